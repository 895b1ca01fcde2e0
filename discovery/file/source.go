package file

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/eds"
	"github.com/understudy-lb/understudy/discovery/internal/cds"
	"github.com/understudy-lb/understudy/internal/authority"
	"github.com/understudy-lb/understudy/internal/backoff"
	"github.com/understudy-lb/understudy/internal/filewatch"
	"github.com/understudy-lb/understudy/topology"
)

var logger = grpclog.Component("understudy")

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
	if _, err := t.Refresh(cds.DNS); err != nil { // those clusters read it again that are names
		return nil, err
	}
	name, cluster := nameOf(path), t.Parameter("cluster")
	if cluster != "" {
		name = cluster
	}
	return []discovery.Part{{Source: &source{path, cluster, t, discovery.OwnOptions(t, filewatch.Options{})}, Authority: authority.Encode(name)}}, nil
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

// source finds out the endpoints in a file.
type source struct {
	path    string
	cluster string // of those in the file, "" for the only one
	target  *discovery.Target
	options filewatch.Options
}

// Start implements discovery.Source: it begins to watch the file, which need not exist
// yet.
func (s *source) Start(r discovery.Receiver) (discovery.Watch, error) {
	w := &watch{source: s, receiver: r, done: make(chan struct{})}
	w.maker = cds.Maker{Target: s.target, EDS: w.eds}
	go w.run()
	return w, nil
}

// watch is a file that is being watched for one channel.
type watch struct {
	*source
	receiver discovery.Receiver
	done     chan struct{}
	close    sync.Once

	maker cds.Maker
	noted string            // what was said of the clusters last
	told  [sha256.Size]byte // the sum of the content that was passed on last, or complained of
}

// eds returns where the endpoints of an EDS cluster come from: the management servers of
// the bootstrap. The cluster is the file's, even if the user wants those of other targets
// to begin at one of the servers'.
func (w *watch) eds(service string) (discovery.Source, error) {
	parts, err := w.target.Parts(eds.NewBuilder(), resolver.Target{URL: url.URL{Scheme: eds.Scheme, Path: "/" + service, RawQuery: "cds=false"}})
	if err != nil {
		return nil, err
	}
	return parts[0].Source, nil
}

// Close implements discovery.Watch.
func (w *watch) Close() { w.close.Do(func() { close(w.done) }) }

// run reads the file now and whenever it may have changed. Where it cannot be read, it is
// tried again: what is in the way may go without a change of the file.
func (w *watch) run() {
	l := join(watched{w.path, w.options})
	defer l.leave()
	again := time.NewTimer(0)
	again.Stop() // until there is a failure
	defer again.Stop()
	reason, attempts := (<-chan struct{})(l.ready), 0
	for {
		select {
		case <-w.done:
			return
		case <-again.C:
			attempts++
		case <-reason:
			again.Stop()
			attempts = 0
		}
		reason = l.next()
		err := w.refresh()
		if err != nil {
			w.receiver.Fail(err)
		}
		if mayPass(err) {
			again.Reset(backoff.Delay(attempts, rand.Float64()))
		}
	}
}

// mayPass returns whether err is the system's, which may be over without a change of the
// file: there are too few descriptors, or the disk does not answer. A file that appears is
// noticed.
func mayPass(err error) bool {
	_, system := errors.AsType[syscall.Errno](err)
	return system && !errors.Is(err, fs.ErrNotExist)
}

// refresh reads the file, and passes its content on if that is new.
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
	cluster, err := doc.choose(w.cluster)
	if err != nil {
		return err
	}
	if doc.clusters != nil {
		w.pass(doc, cluster)
		return nil
	}
	explain := func(invalid *topology.Invalid) error { return doc.explain(invalid) }
	_ = w.receiver.Update(discovery.Answer{Cluster: doc.cluster, Explain: explain, Version: fmt.Sprintf("%.4x", sum)}) // the next edit comes unasked
	return nil
}

// pass passes on the parts that a cluster of the document stands for, and logs what has no
// effect in it.
func (w *watch) pass(doc *document, cluster string) {
	parts, asked := w.maker.Parts(cluster, doc.find, doc.explainEntry)
	w.receiver.Parts(parts)
	if notes := doc.notes(asked); notes != nil && notes.Error() != w.noted {
		w.noted = notes.Error()
		logger.Warning(Scheme + ": " + w.noted)
	}
}
