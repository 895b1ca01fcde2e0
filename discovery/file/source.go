package file

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/eds"
	_ "github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/envoy/clusterfile"
	"github.com/understudy-lb/understudy/internal/envoy/filewatch"
	"github.com/understudy-lb/understudy/internal/net/xnet"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

var logger = grpclog.Component("understudy")

// Scheme is the scheme of the targets of this package.
const Scheme = "file"

func init() { discovery.Register(Scheme, parseTarget) }

func parseTarget(t *discovery.Target) ([]discovery.Mechanism, error) {
	path, err := pathOf(t.Target)
	if err != nil {
		return nil, err
	}
	if _, err := t.Refresh(cds.DNS); err != nil { // clusters with DNS names read these parameters later
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
	var problem string
	switch {
	case u.Opaque != "":
		problem = "has a relative path (write three slashes before an absolute path)"
	case u.Host != "" || u.User != nil:
		problem = fmt.Sprintf("names the host %s (write three slashes before a path)", printable.Quote(u.Host))
	case u.Fragment != "":
		problem = fmt.Sprintf("has a fragment, %s (in a path, # is written %%23)", printable.Quote(u.Fragment))
	case u.Path == "" || u.Path == "/":
		problem = "has no path"
	default:
		return u.Path, nil
	}
	return "", fmt.Errorf("target %s %s, want file:///path/to/endpoints.yaml", printable.Quote(u.Redacted()), problem)
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
	w := &watch{source: s, receiver: r, done: ctx.Done()}
	w.maker = cds.Maker{Target: s.target, EDS: w.eds}
	go w.run()
	return discovery.Started{Close: cancel}, nil
}

type watch struct {
	*source
	receiver *discovery.Receiver
	done     <-chan struct{}

	maker     cds.Maker
	lastNotes string
}

// eds returns the source of an EDS cluster, whose endpoints come from the management servers of the
// xDS bootstrap. The source does not request the Cluster from a server, because the file defines
// it.
func (w *watch) eds(service string) (discovery.Source, error) {
	mechanisms, err := w.target.Mechanisms(nil, resolver.Target{URL: url.URL{Scheme: eds.Scheme, Path: "/" + service, RawQuery: "cds=false"}})
	if err != nil {
		return nil, err
	}
	return mechanisms[0].Source, nil
}

func (w *watch) run() {
	l := join(readerKey{w.path, w.options})
	defer l.leave()
	if r, changed := l.read(); r != nil && !l.isCurrent() && !w.wait(changed, time.After(editTimeout)) {
		return
	}
	for sent := (*reading)(nil); ; {
		r, changed := l.read()
		if r != nil && r != sent {
			sent = r
			w.send(r)
		}
		if !w.wait(changed, nil) {
			return
		}
	}
}

// editTimeout limits how long a new channel waits for the latest edit of a file that other channels
// already use. It is longer than the time after which a file counts as complete (docs/waits.md).
const editTimeout = 3 * time.Second

// wait waits until the file has been read again, or until a value arrives on timeout. It returns
// false if the watch is closed first.
func (w *watch) wait(changed <-chan struct{}, timeout <-chan time.Time) bool {
	select {
	case <-w.done:
		return false
	case <-changed:
	case <-timeout:
	}
	return true
}

func (w *watch) send(r *reading) {
	if r.err != nil {
		w.receiver.Fail(r.err)
		return
	}
	cluster, err := r.doc.Choose(w.cluster)
	switch {
	case err != nil:
		w.receiver.Fail(err)
	case r.doc.Clusters != nil:
		w.sendMechanisms(r.doc, cluster)
	default:
		answer, err := r.doc.Answer()
		if err != nil {
			w.receiver.Fail(err)
			return
		}
		answer.Version = r.version
		_ = w.receiver.Update(answer) // no error handling is needed, because the next edit is read anyway
	}
}

// sendMechanisms sends the discovery mechanisms of a cluster to the receiver. It also logs the
// fields of the file that have no effect, if they differ from those that it logged last.
func (w *watch) sendMechanisms(doc *clusterfile.Document, cluster string) {
	g, notes := doc.Resolve(cluster)
	w.receiver.Mechanisms(w.maker.Mechanisms(g))
	if notes != nil && notes.Error() != w.lastNotes {
		w.lastNotes = notes.Error()
		logger.Warning(Scheme + ": " + w.lastNotes)
	}
}

// Check implements discovery.Source. If read is set, it reads the file and returns the mistakes in
// the file.
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
		err = doc.Check(cluster)
	}
	return err
}
