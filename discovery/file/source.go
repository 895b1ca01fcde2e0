package file

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/eds"
	"github.com/understudy-lb/understudy/internal/cds"
	"github.com/understudy-lb/understudy/internal/clusterfile"
	"github.com/understudy-lb/understudy/internal/envoy"
	"github.com/understudy-lb/understudy/internal/filewatch"
	"github.com/understudy-lb/understudy/internal/printable"
	_ "github.com/understudy-lb/understudy/internal/resolving"
	"github.com/understudy-lb/understudy/internal/xnet"
)

var logger = grpclog.Component("understudy")

// Scheme is the scheme of the targets of this package.
const Scheme = "file"

func init() { discovery.Register(Scheme, parts) }

func parts(t *discovery.Target) ([]discovery.Mechanism, error) {
	path, err := pathOf(t.Target)
	if err != nil {
		return nil, err
	}
	if _, err := t.Refresh(cds.DNS); err != nil { // only a check; clusters with DNS names read the parameters themselves
		return nil, err
	}
	cds.Reach(t)
	name, cluster := clusterfile.NameOf(path), t.Parameter("cluster")
	if cluster != "" {
		name = cluster
	}
	return []discovery.Mechanism{{Source: &source{path, cluster, t, discovery.OwnOptions(t, filewatch.Options{})}, Authority: xnet.EncodeAuthority(name)}}, nil
}

func pathOf(target resolver.Target) (string, error) {
	u := target.URL
	var what string
	switch {
	case u.Opaque != "":
		what = "has a relative path (an absolute one has three slashes before it)"
	case u.Host != "" || u.User != nil:
		what = fmt.Sprintf("names the host %s (three slashes come before a path)", printable.Quote(u.Host))
	case u.Fragment != "":
		what = fmt.Sprintf("has a fragment, %s (in a path, # is %%23)", printable.Quote(u.Fragment))
	case u.Path == "" || u.Path == "/":
		what = "has no path"
	default:
		return u.Path, nil
	}
	return "", fmt.Errorf("target %s %s, want file:///path/to/endpoints.yaml", printable.Quote(u.Redacted()), what)
}

type source struct {
	path    string
	cluster string
	target  *discovery.Target
	options filewatch.Options
}

// Start implements discovery.Source. The file may not exist yet.
func (s *source) Start(r *discovery.Receiver) (discovery.Started, error) {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watch{source: s, receiver: r, done: ctx.Done(), current: explainer{new(atomic.Pointer[clusterfile.Document])}}
	w.maker = cds.Maker{Target: s.target, EDS: w.eds}
	go w.run()
	return discovery.Started{Close: cancel}, nil
}

type watch struct {
	*source
	receiver *discovery.Receiver
	done     <-chan struct{}

	maker   cds.Maker
	current explainer
	noted   string
}

// eds returns the source of an EDS cluster, whose endpoints come from the management servers of the
// xDS bootstrap. It never requests the Cluster from a server, because the file defines it.
func (w *watch) eds(service string) (discovery.Source, error) {
	parts, err := w.target.Parts(nil, resolver.Target{URL: url.URL{Scheme: eds.Scheme, Path: "/" + service, RawQuery: "cds=false"}})
	if err != nil {
		return nil, err
	}
	return parts[0].Source, nil
}

func (w *watch) run() {
	l := join(watched{w.path, w.options})
	defer l.leave()
	// The source may be stored while the channel is idle. It must not keep the document in memory
	// then.
	defer w.current.Store(nil)
	if r, news := l.read(); r != nil && !l.isCurrent() && !w.wait(news, time.After(current)) {
		return
	}
	for told := (*reading)(nil); ; {
		r, news := l.read()
		if r != nil && r != told {
			told = r
			w.tell(r)
		}
		if !w.wait(news, nil) {
			return
		}
	}
}

// current limits how long a new channel waits for the latest edit of a file that other channels
// already use. It is longer than the time after which a file counts as complete (docs/waits.md).
const current = 3 * time.Second

// wait waits until the next reading, or until a value arrives on late. It returns false if the
// watch is closed first.
func (w *watch) wait(news <-chan struct{}, late <-chan time.Time) bool {
	select {
	case <-w.done:
		return false
	case <-news:
	case <-late:
	}
	return true
}

func (w *watch) tell(r *reading) {
	if r.err != nil {
		w.receiver.Fail(r.err)
		return
	}
	cluster, err := r.doc.Choose(w.cluster)
	switch {
	case err != nil:
		w.receiver.Fail(err)
	case r.doc.Clusters != nil:
		w.current.Store(r.doc)
		w.pass(r.doc, cluster)
	default:
		answer, err := r.doc.Answer()
		if err != nil {
			w.receiver.Fail(err)
			return
		}
		answer.Version = r.version
		_ = w.receiver.Update(answer) // the error is ignored, because the next edit is read in any case
	}
}

// pass sends the discovery mechanisms of a cluster to the receiver. It logs the fields that have no
// effect, if they differ from last time.
func (w *watch) pass(doc *clusterfile.Document, cluster string) {
	find := func(name string) cds.Known {
		known := doc.Find(name)
		if known.Cluster != nil {
			known.Explain = w.current.of(name)
		}
		return known
	}
	g := cds.Resolve(cluster, find)
	w.receiver.Parts(w.maker.Parts(g, doc.ExplainEntry))
	if notes := doc.Notes(g.Asked); notes != nil && notes.Error() != w.noted {
		w.noted = notes.Error()
		logger.Warning(Scheme + ": " + w.noted)
	}
}

// explainer adds positions in the file to the errors of clusters. Close clears its pointer to the
// document, because sources may outlive the watch.
type explainer struct {
	*atomic.Pointer[clusterfile.Document]
}

// of returns a function that adds the position in the file to an error in a cluster's endpoints.
func (e explainer) of(cluster string) func(*envoy.Invalid) error {
	return func(invalid *envoy.Invalid) error {
		if doc := e.Load(); doc != nil {
			return doc.ExplainEndpoints(cluster, invalid)
		}
		return invalid
	}
}

// Check implements discovery.Source. If read is set, it reads the file and returns the mistakes in
// it.
func (s *source) Check(read bool) error {
	if !read {
		return nil
	}
	doc, err := clusterfile.Load(s.path)
	if err != nil {
		return err
	}
	cluster, err := doc.Choose(s.cluster)
	if err == nil && doc.Clusters != nil {
		_, _, err = doc.Mechanisms(cluster)
	}
	return err
}
