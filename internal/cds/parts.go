package cds

import (
	"fmt"
	"net/url"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/internal/core/clusters"
	"github.com/understudy-lb/understudy/internal/envoy"
	"github.com/understudy-lb/understudy/internal/topology"
)

// Maker creates discovery mechanisms from clusters. Its exported fields must be set before use. It
// is not safe for concurrent use.
type Maker struct {
	// Target is the channel's target. Its options also apply to the sources that Maker creates.
	Target *discovery.Target
	// EDS returns the source of a ClusterLoadAssignment.
	EDS func(service string) (discovery.Source, error)
	// Scope identifies a management server. EDS sources with different scopes are never equal, so that
	// the endpoints of two servers are not mixed.
	Scope int

	sources map[string]discovery.Source
	used    map[string]discovery.Source
}

// DNS holds the default settings for periodic lookups of the names in clusters.
var DNS = discovery.Refresh{RemoveAfter: 2}

// Known is the state of a cluster.
type Known struct {
	// Cluster is nil if the cluster is not known yet, or if Err is set.
	Cluster *Cluster
	Err     error
	// Explain turns a problem into an error for the author of the cluster. It may be nil.
	Explain func(*envoy.Invalid) error
}

// Graph is the result of resolving a cluster. It must not be modified.
type Graph struct {
	List  []clusters.Entry
	Known map[string]Known
	Asked []string // names of the clusters that were requested, in this order
}

// Resolve resolves a cluster and its descendants (gRFC A37).
func Resolve(first string, find func(name string) Known) *Graph {
	g := &Graph{Known: make(map[string]Known)}
	g.List, g.Asked = clusters.Resolve(first, func(name string) clusters.Cluster {
		k := find(name)
		g.Known[name] = k
		switch {
		case k.Err != nil:
			return clusters.Cluster{Err: k.Err}
		case k.Cluster == nil:
			return clusters.Cluster{Waiting: true}
		}
		return clusters.Cluster{Children: k.Cluster.Children}
	})
	return g
}

// Parts returns the discovery mechanisms of a cluster, at least one. explain adds detail to errors,
// and may be nil.
func (m *Maker) Parts(g *Graph, explain func(clusters.Entry) error) (parts []discovery.Mechanism) {
	m.used = make(map[string]discovery.Source)
	for _, e := range g.List {
		part := discovery.Mechanism{Name: e.Name, Source: m.source(e, g.Known[e.Name], explain)}
		if c := g.Known[e.Name].Cluster; c != nil {
			part.OutlierDetection = c.OutlierDetection.JSON()
		}
		parts = append(parts, part)
	}
	m.sources = m.used
	return parts
}

func (m *Maker) source(e clusters.Entry, k Known, explain func(clusters.Entry) error) discovery.Source {
	switch {
	case e.Waiting:
		return waiting{}
	case e.Err != nil && explain != nil:
		return failing(explain(e).Error())
	case e.Err != nil:
		return failing(e.Err.Error())
	}
	c := k.Cluster
	switch c.Kind {
	case EDS:
		return m.same(fmt.Sprint("eds ", m.Scope, " ", c.Service), func() (discovery.Source, error) { return m.EDS(c.Service) })
	case LogicalDNS:
		return m.dns(c.Host)
	case StrictDNS:
		return m.same(contentOf("strict", c), func() (discovery.Source, error) { return m.strict(c, k.Explain), nil })
	default:
		return m.same(contentOf("static", c), func() (discovery.Source, error) { return static{c, k.Explain}, nil })
	}
}

// contentOf returns a key that identifies the endpoints of a cluster. An edit of another cluster
// does not change the key, so the names are not looked up again.
func contentOf(kind string, c *Cluster) string {
	if c.answer.Identity == "" { // the cluster cannot be encoded
		return fmt.Sprintf("%s %p", kind, c)
	}
	return fmt.Sprintf("%s %q %s", kind, c.Name, c.answer.Identity)
}

func (m *Maker) same(key string, create func() (discovery.Source, error)) discovery.Source {
	if s, ok := m.used[key]; ok {
		return s
	}
	s, ok := m.sources[key]
	if !ok {
		created, err := create()
		if err != nil {
			return failing(err.Error())
		}
		s = &one{created}
	}
	m.used[key] = s
	return s
}

// one makes a source comparable: its address identifies the source.
type one struct{ discovery.Source }

// Size returns the approximate size in bytes. The store of answers of idle channels uses it.
func (o *one) Size() int {
	if sized, ok := o.Source.(interface{ Size() int }); ok {
		return sized.Size()
	}
	return 500
}

// Reach marks those options as used that apply to the sources of clusters. Otherwise, they would be
// reported as having no effect.
func Reach(t *discovery.Target) {
	for _, u := range []url.URL{{Scheme: "eds", Path: "/any", RawQuery: "cds=false"}, {Scheme: failover.Scheme, Path: "/any"}} {
		_, _ = t.Parts(nil, resolver.Target{URL: u}) // only marks the options: parsing a target starts no source
	}
}

// dns returns the source that looks up a DNS name. It is the source of a failover target, because
// that supports proxies.
func (m *Maker) dns(host string) discovery.Source {
	return m.same("dns "+host, func() (discovery.Source, error) {
		list := url.PathEscape((&url.URL{Scheme: "dns", Path: "/" + host}).String())
		parts, err := m.Target.Parts(nil, resolver.Target{URL: url.URL{
			Scheme: failover.Scheme, Path: "/dns:///" + host, RawPath: "/" + list,
		}})
		if err != nil {
			return nil, err
		}
		return parts[0].Source, nil
	})
}

// static is a source with a single answer. It may outlive its Cluster resource.
type static struct {
	cluster *Cluster
	explain func(*envoy.Invalid) error
}

func (s static) Size() int { return topology.Size(&s.cluster.answer) }

func (s static) Start(r *discovery.Receiver) (discovery.Started, error) {
	_ = r.Update(s.cluster.answerWith(s.explain)) // the only answer, because an edited cluster gets a new source
	return discovery.Started{}, nil
}

func (static) Check(bool) error { return nil }

// answerWith returns the answer of a cluster with inline endpoints. explain converts the notes to
// errors, and may be nil.
func (c *Cluster) answerWith(explain func(*envoy.Invalid) error) discovery.Answer {
	a := c.answer
	a.Notes = envoy.Texts(c.unused, explain)
	return a
}

type failing string

func (f failing) Start(r *discovery.Receiver) (discovery.Started, error) {
	r.Fail(f)
	return discovery.Started{}, nil
}

// Check returns nil, although every use fails: an invalid cluster must only fail its own discovery
// mechanism.
func (failing) Check(bool) error { return nil }

func (f failing) Error() string { return string(f) }

// waiting is the source of a cluster that has not been received yet.
type waiting struct{}

func (waiting) Start(r *discovery.Receiver) (discovery.Started, error) {
	r.Trying("waiting for the cluster")
	return discovery.Started{}, nil
}

func (waiting) Check(bool) error { return nil }
