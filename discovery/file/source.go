package file

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/authority"
	"github.com/understudy-lb/understudy/internal/filewatch"
	"github.com/understudy-lb/understudy/topology"
)

// Scheme is the scheme of the targets of this package.
const Scheme = "file"

func init() { discovery.Register(NewBuilder()) }

// NewBuilder returns a builder for grpc.WithResolvers, for a program that does not use
// understudy.With. It takes the place of the one, without options, that this package
// registers when it is imported.
func NewBuilder(opts ...discovery.Option) *discovery.Builder {
	return discovery.NewBuilder(Scheme, parts, opts...)
}

// parts reads a target.
func parts(t *discovery.Target) ([]discovery.Part, error) {
	path, err := pathOf(t.Target)
	if err != nil {
		return nil, err
	}
	s := source{path, discovery.OwnOptions(t, filewatch.Options{})}
	return []discovery.Part{{Source: s, Authority: authority.Encode(nameOf(path))}}, nil
}

// pathOf returns the path of the target's file.
func pathOf(target resolver.Target) (string, error) {
	u := target.URL
	var what string
	switch {
	case u.Opaque != "":
		what = "has a relative path (an absolute one has three slashes before it)"
	case u.Host != "" || u.User != nil:
		what = fmt.Sprintf("names the host %q (three slashes come before a path)", u.Host)
	case u.Fragment != "":
		what = fmt.Sprintf("has a fragment, %q (in a path, # is %%23)", u.Fragment)
	case u.Path == "" || u.Path == "/":
		what = "has no path"
	default:
		return u.Path, nil
	}
	return "", fmt.Errorf("target %q %s, want file:///path/to/endpoints.yaml", u.Redacted(), what)
}

// source finds out the endpoints in the file at a path.
type source struct {
	path    string
	options filewatch.Options
}

// Start implements discovery.Source: it begins to watch the file, which need not exist
// yet.
func (s source) Start(r discovery.Receiver) (discovery.Watch, error) {
	w := &watch{source: s, receiver: r, done: make(chan struct{})}
	go w.run()
	return w, nil
}

// watch is a file that is being watched for one channel.
type watch struct {
	source
	receiver discovery.Receiver
	done     chan struct{}
	close    sync.Once

	told [sha256.Size]byte // the sum of the content that was passed on last, or complained of
}

// Close implements discovery.Watch.
func (w *watch) Close() { w.close.Do(func() { close(w.done) }) }

// run reads the file now and whenever it may have changed.
func (w *watch) run() {
	changes := newWatcher(w.path, w.options)
	defer changes.close()
	for {
		if err := w.refresh(); err != nil {
			w.receiver.Fail(err)
		}
		if !changes.wait(w.done) {
			return
		}
	}
}

// refresh reads the file, and passes on what is in it unless that was done.
func (w *watch) refresh() error {
	data, err := read(w.path)
	if err != nil {
		w.told = [sha256.Size]byte{}
		return err
	}
	sum := sha256.Sum256(data)
	if w.told == sum {
		return nil
	}
	w.told = sum
	doc, err := parse(w.path, data)
	if err != nil {
		return err
	}
	explain := func(invalid *topology.Invalid) error { return doc.explain(invalid) }
	_ = w.receiver.Update(discovery.Answer{Cluster: doc.cluster, Explain: explain}) // the next edit comes unasked
	return nil
}
