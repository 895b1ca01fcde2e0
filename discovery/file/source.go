package file

import (
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
	"github.com/understudy-lb/understudy/internal/lb/serial"
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
	name, cluster := clusterfile.NameOf(path), t.Parameter("cluster")
	if cluster != "" {
		name = cluster
	}
	return []discovery.Mechanism{{Source: &source{watched{path, discovery.OwnOptions(t, filewatch.Options{})}, cluster, t}, Authority: xnet.EncodeAuthority(name)}}, nil
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
	watched
	cluster string
	target  *discovery.Target
}

// Start implements discovery.Source. The file may not exist yet.
func (s *source) Start(r *discovery.Receiver) (discovery.Started, error) {
	u := &user{source: s, receiver: r, joins: true}
	u.maker = cds.Maker{Target: s.target, EDS: u.eds}
	started, err := discovery.Shared(s.watched, 0, s.watched).Start(new(discovery.Receiver).With(discovery.Hooks{Mechanisms: u.update}))
	if err != nil {
		return started, err
	}
	u.events.Do(func() { u.joins = false })
	return discovery.Started{Close: func() {
		u.events.Run(u.editTimer.Stop)
		started.Close()
	}}, nil
}

// user makes the answers of a channel from the readings of a file.
type user struct {
	*source
	receiver *discovery.Receiver

	events    serial.Serializer // guards the fields below
	joins     bool              // while true, a reading is the last one of the other channels
	editTimer serial.Timer
	last      *content // what was sent last
	maker     cds.Maker
	lastNotes string
}

// eds returns the source of an EDS cluster, whose endpoints come from the management servers of the
// xDS bootstrap. The source does not request the Cluster from a server, because the file defines
// it.
func (u *user) eds(service string) (discovery.Source, error) {
	mechanisms, err := u.target.Mechanisms(nil, resolver.Target{URL: url.URL{Scheme: eds.Scheme, Path: "/" + service, RawQuery: "cds=false"}})
	if err != nil {
		return nil, err
	}
	return mechanisms[0].Source, nil
}

// editTimeout limits how long a new channel waits for the latest edit of a file that other channels
// already use. It is longer than the time after which a file counts as complete (docs/waits.md).
const editTimeout = 3 * time.Second

// update receives a reading, which is the source of the only mechanism. If the file has changed
// since the reading that other channels use, a new channel waits for the next one.
func (u *user) update(list []discovery.Mechanism) {
	r := list[0].Source.(*reading)
	u.events.Run(func() {
		if u.joins && !r.isCurrent(u.path) {
			u.editTimer.Start(&u.events, editTimeout, func() { u.send(r.content) })
			return
		}
		u.editTimer.Stop()
		if r.content != u.last {
			u.send(r.content)
		}
	})
}

func (u *user) send(c *content) {
	u.last = c
	if c.err != nil {
		u.receiver.Fail(c.err)
		return
	}
	cluster, err := c.doc.Choose(u.cluster)
	switch {
	case err != nil:
		u.receiver.Fail(err)
	case c.doc.Clusters != nil:
		u.sendMechanisms(c.doc, cluster)
	default:
		answer, err := c.doc.Answer()
		if err != nil {
			u.receiver.Fail(err)
			return
		}
		answer.Version = c.version
		_ = u.receiver.Update(answer) // no error handling is needed, because the next edit is read anyway
	}
}

// sendMechanisms sends the discovery mechanisms of a cluster to the receiver. It also logs the
// fields of the file that have no effect, if they differ from those that it logged last.
func (u *user) sendMechanisms(doc *clusterfile.Document, cluster string) {
	g, notes := doc.Resolve(cluster)
	u.receiver.Mechanisms(u.maker.Mechanisms(g))
	if notes != nil && notes.Error() != u.lastNotes {
		u.lastNotes = notes.Error()
		logger.Warning(Scheme + ": " + u.lastNotes)
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
