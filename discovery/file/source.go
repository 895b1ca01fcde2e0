package file

import (
	"cmp"
	"fmt"
	"net/url"

	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/eds"
	_ "github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/envoy/clusterfile"
	"github.com/understudy-lb/understudy/internal/net/xnet"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

var logger = grpclog.Component("understudy")

// Scheme is the scheme of this package's targets.
const Scheme = "file"

func init() { discovery.Register(Scheme, parseTarget) }

func parseTarget(t *discovery.Target) ([]discovery.Mechanism, error) {
	path, err := pathOf(t.Target)
	if err != nil {
		return nil, err
	}
	t.Refresh(discovery.Refresh{}) // clusters with DNS names read these parameters later
	name, cluster := clusterfile.NameOf(path), t.Parameter("cluster")
	if cluster != "" {
		name = cluster
	}
	return []discovery.Mechanism{{Source: &source{watched{path}, cluster, t}, Authority: xnet.EncodeAuthority(name)}}, nil
}

func pathOf(target resolver.Target) (string, error) {
	u := target.URL
	switch {
	case u.Host != "" || u.User != nil:
		return "", fmt.Errorf("target %s names the host %s (write three slashes before a path), want file:///path/to/endpoints.yaml", printable.Quote(u.Redacted()), printable.Quote(u.Host))
	case u.Path == "" || u.Path == "/":
		return "", fmt.Errorf("target %s has no path, want file:///path/to/endpoints.yaml", printable.Quote(u.Redacted()))
	}
	return u.Path, nil
}

type source struct {
	watched
	cluster string
	target  *discovery.Target
}

// Start works even if the file doesn't exist yet.
func (s *source) Start(r *discovery.Receiver) (discovery.Started, error) {
	u := &user{source: s, receiver: r}
	u.maker = cds.Maker{Target: s.target, EDS: u.eds}
	return discovery.Shared(s.watched, 0, s.watched).Start(new(discovery.Receiver).With(discovery.Hooks{Mechanisms: u.update}))
}

// user turns the content of a file into the answers for one channel.
type user struct {
	*source
	receiver  *discovery.Receiver
	maker     cds.Maker
	lastNotes string
}

// eds returns the source of an EDS cluster, whose endpoints come from the management servers in the
// xDS bootstrap. We don't ask them for the Cluster (cds=false), because it's in the file.
func (u *user) eds(service string) (discovery.Source, error) {
	mechanisms, err := u.target.Mechanisms(nil, resolver.Target{URL: url.URL{Scheme: eds.Scheme, Path: "/" + service, RawQuery: "cds=false"}})
	if err != nil {
		return nil, err
	}
	return mechanisms[0].Source, nil
}

// update gets a list with just one mechanism, whose source is the content.
func (u *user) update(list []discovery.Mechanism) {
	c := list[0].Source.(*content)
	if c.err != nil {
		u.receiver.Fail(c.err)
		return
	}
	name, err := c.doc.Choose(u.cluster)
	known := c.doc.Find(name)
	if err == nil && c.doc.Clusters == nil {
		err = cmp.Or(known.Err, known.NoEndpoints)
	}
	switch {
	case err != nil:
		u.receiver.Fail(err)
	case c.doc.Clusters != nil:
		u.sendMechanisms(c.doc, name)
	default:
		answer := known.Cluster.Answer
		answer.Version = c.version
		_ = u.receiver.Update(answer) // ignored, because we'll read the next edit in any case
	}
}

// sendMechanisms also logs which fields of the file have no effect, if that has changed.
func (u *user) sendMechanisms(doc *clusterfile.Document, cluster string) {
	g := doc.Resolve(cluster)
	u.receiver.Mechanisms(u.maker.Mechanisms(g))
	if g.Notes != nil && g.Notes.Error() != u.lastNotes {
		u.lastNotes = g.Notes.Error()
		logger.Warning(Scheme + ": " + u.lastNotes)
	}
}

func (s *source) Check(read bool) error {
	if !read {
		return nil
	}
	doc, err := clusterfile.Load(s.path)
	if err != nil {
		return err
	}
	_, err = doc.Choose(s.cluster)
	return err
}
