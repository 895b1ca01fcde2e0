package eds

import (
	"errors"
	"fmt"
	"sync"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/hierarchy"
	"github.com/understudy-lb/understudy/internal/svcconfig"
	"github.com/understudy-lb/understudy/topology"
)

var logger = grpclog.Component("understudy")

// edsResolver passes the endpoints of one cluster to one channel. The watcher's
// methods only leave news; a goroutine of its own translates and sends, so that a
// slow channel holds up no other, and a burst of updates becomes one.
type edsResolver struct {
	cc            resolver.ClientConn
	cluster       string
	serviceConfig string
	cancel        func()
	done          chan struct{}
	wake          chan struct{} // holds a token when there is news

	mu   sync.Mutex
	news news

	// Used by the goroutine alone.
	translator topology.Translator
	noted      string
}

// news is what was heard last: a cluster or, while no good one is known, why.
type news struct {
	cluster *endpointv3.ClusterLoadAssignment
	err     error
}

func newResolver(cc resolver.ClientConn, cluster, serviceConfig string) *edsResolver {
	return &edsResolver{
		cc:            cc,
		cluster:       cluster,
		serviceConfig: serviceConfig,
		done:          make(chan struct{}),
		wake:          make(chan struct{}, 1),
	}
}

// start begins to pass on what is heard; cancel ends the watch.
func (r *edsResolver) start(cancel func()) {
	r.cancel = cancel
	go r.run()
}

// Endpoints takes a good resource.
func (r *edsResolver) Endpoints(cluster *endpointv3.ClusterLoadAssignment) {
	r.leave(news{cluster: cluster})
}

// Unknown takes the reason why there is none.
func (r *edsResolver) Unknown(err error) { r.leave(news{err: err}) }

func (r *edsResolver) leave(n news) {
	r.mu.Lock()
	r.news = n
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *edsResolver) take() news {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.news
	r.news = news{}
	return n
}

func (r *edsResolver) run() {
	for {
		select {
		case <-r.done:
			return
		case <-r.wake:
		}
		n := r.take()
		switch {
		case n.cluster != nil:
			r.send(n.cluster)
		case n.err != nil:
			r.cc.ReportError(n.err)
		}
	}
}

// send translates cluster and gives it to the channel.
func (r *edsResolver) send(cluster *endpointv3.ClusterLoadAssignment) {
	state, err := r.translate(cluster)
	if err != nil {
		logger.Errorf("eds: cluster %q: %v", r.cluster, err)
		r.cc.ReportError(fmt.Errorf("eds: cluster %q: %v", r.cluster, err)) // a status in it would end waiting calls
		return
	}
	// A priority without endpoints is no refusal of the rest; policies say so themselves.
	if err := r.cc.UpdateState(state); err != nil && !errors.Is(err, balancer.ErrBadResolverState) {
		logger.Warningf("eds: cluster %q: the channel does not take the endpoints: %v", r.cluster, err)
	}
}

func (r *edsResolver) translate(cluster *endpointv3.ClusterLoadAssignment) (resolver.State, error) {
	tree, err := r.translator.Translate(cluster)
	if err != nil {
		return resolver.State{}, err
	}
	r.note(tree.Notes)
	config, err := svcconfig.Merge(r.serviceConfig, tree.Config)
	if err != nil {
		return resolver.State{}, err
	}
	parsed := r.cc.ParseServiceConfig(config)
	if parsed.Err != nil {
		return resolver.State{}, parsed.Err
	}
	return hierarchy.Seal(resolver.State{Endpoints: tree.Endpoints, ServiceConfig: parsed}), nil
}

// note logs what has no effect in a cluster, when it changes.
func (r *edsResolver) note(notes []topology.Problem) {
	text := fmt.Sprint(notes)
	if text == r.noted {
		return
	}
	r.noted = text
	for _, n := range notes {
		logger.Infof("eds: cluster %q: %v", r.cluster, n)
	}
}

// ResolveNow does nothing: the server sends what is new.
func (*edsResolver) ResolveNow(resolver.ResolveNowOptions) {}

// Close ends the watch. It does not wait for an update that is being applied, which
// may itself wait for the channel.
func (r *edsResolver) Close() {
	r.cancel()
	close(r.done)
}
