package file

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/hierarchy"
	"github.com/understudy-lb/understudy/internal/svcconfig"
	"github.com/understudy-lb/understudy/topology"
)

var logger = grpclog.Component("understudy")

// fileResolver passes the endpoints in one file to one channel.
type fileResolver struct {
	cc            resolver.ClientConn
	path          string
	serviceConfig string
	done          chan struct{}
	close         sync.Once

	// Used by run's goroutine alone.
	translator topology.Translator
	sent       *[sha256.Size]byte // of the content that the channel has, nil if none
	complaint  string             // what is wrong now, "" if nothing
	noted      string             // what was noted last
}

func newResolver(cc resolver.ClientConn, path, serviceConfig string) *fileResolver {
	return &fileResolver{cc: cc, path: path, serviceConfig: serviceConfig, done: make(chan struct{})}
}

// run reads the file now and whenever it may have changed.
func (r *fileResolver) run() {
	w := newWatcher(r.path)
	defer w.close()
	for {
		if err := r.refresh(); err != nil {
			r.complain(err)
		} else {
			r.complaint = ""
		}
		if !w.wait(r.done) {
			return
		}
	}
}

// refresh reads the file, and sends what is in it unless the channel has it.
func (r *fileResolver) refresh() error {
	data, err := read(r.path)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	if r.sent != nil && *r.sent == sum {
		return nil
	}
	doc, err := parse(r.path, data)
	if err != nil {
		return err
	}
	tree, err := r.translator.Translate(doc.cluster)
	if err != nil {
		return doc.explain(err)
	}
	state, err := r.state(tree)
	if err != nil {
		return fmt.Errorf("%s: %w", r.path, err)
	}
	r.sent = &sum
	r.note(doc, tree.Notes)
	r.send(state)
	return nil
}

// state returns what the channel is told.
func (r *fileResolver) state(tree topology.Tree) (resolver.State, error) {
	config, err := svcconfig.Merge(r.serviceConfig, tree.Config)
	if err != nil {
		return resolver.State{}, err
	}
	parsed := r.cc.ParseServiceConfig(config)
	if parsed.Err != nil {
		return resolver.State{}, fmt.Errorf("service config: %w", parsed.Err)
	}
	return hierarchy.Seal(resolver.State{Endpoints: tree.Endpoints, ServiceConfig: parsed}), nil
}

func (r *fileResolver) send(state resolver.State) {
	if r.closed() {
		return
	}
	logger.Infof("file: %s: %d endpoints", r.path, len(state.Endpoints))
	// A priority without endpoints is no refusal of the rest; policies say so themselves.
	if err := r.cc.UpdateState(state); err != nil && !errors.Is(err, balancer.ErrBadResolverState) {
		logger.Warningf("file: %s: the channel does not take the endpoints: %v", r.path, err)
	}
}

// complain logs err, once, and tells the channel if it has nothing better.
func (r *fileResolver) complain(err error) {
	if err.Error() == r.complaint || r.closed() {
		return
	}
	r.complaint = err.Error()
	if r.sent != nil {
		logger.Errorf("file: %v; the endpoints from before stay in use", err)
		return
	}
	logger.Errorf("file: %v", err)
	r.cc.ReportError(fmt.Errorf("file: %v", err)) // a status in it would end waiting calls
}

// note logs what in the file has no effect, when it changes.
func (r *fileResolver) note(doc *document, notes []topology.Problem) {
	var lines []string
	for _, n := range notes {
		line, column := doc.locate(n.Path)
		lines = append(lines, fmt.Sprintf("file: %s:%d:%d: %s", r.path, line, column, n.Text))
	}
	if text := fmt.Sprint(lines); text != r.noted {
		r.noted = text
		for _, line := range lines {
			logger.Warning(line)
		}
	}
}

// ResolveNow does nothing: the file is watched.
func (*fileResolver) ResolveNow(resolver.ResolveNowOptions) {}

// Close ends the watch. No update begins after it. It does not wait for one that is
// under way, because that may itself wait for whoever closes.
func (r *fileResolver) Close() { r.close.Do(func() { close(r.done) }) }

func (r *fileResolver) closed() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}
