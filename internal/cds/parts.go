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

// Maker turns clusters into parts of one channel. Set its fields before calling its
// methods. One goroutine at a time may call them.
type Maker struct {
	// Target is the channel's, whose options hold for the sources.
	Target *discovery.Target
	// EDS returns where the endpoints of a service come from.
	EDS func(service string) (discovery.Source, error)
	// Scope tells management servers apart. Parts with endpoints by EDS are different in
	// each scope, so the endpoints of two servers are never used together.
	Scope int

	sources map[string]discovery.Source // that are at work, by what they are asked
	used    map[string]discovery.Source // in the list that is being made
}

// DNS is how names in clusters are looked up again, where nobody says.
var DNS = discovery.Refresh{RemoveAfter: 2}

// Known holds what is known of a cluster.
type Known struct {
	// Cluster is nil where Err says why there is none, or where nothing is known yet.
	Cluster *Cluster
	Err     error
	// Explain, which may be nil, puts what is wrong with a cluster into the words of
	// whoever wrote it.
	Explain func(*envoy.Invalid) error
}

// Graph is what a cluster stands for. It must not be modified.
type Graph struct {
	List  []clusters.Entry // at least one
	Known map[string]Known // of the clusters that were looked at
	Asked []string         // their names, in order
}

// Resolve returns the graph of a cluster (gRFC A37).
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

// Parts returns the parts of a cluster, at least one. Explain, which may be nil, says more of an
// entry's error.
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

// contentOf returns what tells a cluster with endpoints from what it was before: an edit of
// another must not have its names looked up again.
func contentOf(kind string, c *Cluster) string {
	if c.answer.Identity == "" { // it cannot be encoded
		return fmt.Sprintf("%s %p", kind, c)
	}
	return fmt.Sprintf("%s %q %s", kind, c.Name, c.answer.Identity)
}

// same returns the source that is at work for a key, or a new one.
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

// one is a source that is compared by its address.
type one struct{ discovery.Source }

// Size returns about how many bytes the source takes, for what is kept of closed channels.
func (o *one) Size() int {
	if sized, ok := o.Source.(interface{ Size() int }); ok {
		return sized.Size()
	}
	return 500 // the name of a host or of a service, and its target
}

// Reach asks for the options of the sources that clusters may need, so that none of them counts
// as one without an effect.
func Reach(t *discovery.Target) {
	for _, u := range []url.URL{{Scheme: "eds", Path: "/any", RawQuery: "cds=false"}, {Scheme: failover.Scheme, Path: "/any"}} {
		_, _ = t.Parts(nil, resolver.Target{URL: u}) // which starts nothing
	}
}

// dns returns the source for a name in DNS: that of a part of a failover: target, which
// knows of proxies.
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

// static is a source that answers once. It outlives what its cluster was read from, also while
// the channel is idle.
type static struct {
	cluster *Cluster
	explain func(*envoy.Invalid) error
}

// Size returns how many bytes it takes.
func (s static) Size() int { return topology.Size(&s.cluster.answer) }

// Start implements discovery.Source.
func (s static) Start(r *discovery.Receiver) (discovery.Started, error) {
	_ = r.Update(s.cluster.answerWith(s.explain)) // the next one comes from another source
	return discovery.Started{}, nil
}

// Check implements discovery.Source: the cluster was read.
func (static) Check(bool) error { return nil }

// answerWith returns the answer of a cluster that lists its endpoints, with notes on what has no
// effect in the words of explain, which may be nil.
func (c *Cluster) answerWith(explain func(*envoy.Invalid) error) discovery.Answer {
	a := c.answer
	a.Notes = envoy.Texts(c.unused, explain)
	return a
}

// failing is a source that has no endpoints, and says why.
type failing string

// Start implements discovery.Source.
func (f failing) Start(r *discovery.Receiver) (discovery.Started, error) {
	r.Fail(f)
	return discovery.Started{}, nil
}

// Check implements discovery.Source. What is wrong with a cluster is a failure of its part.
func (failing) Check(bool) error { return nil }

func (f failing) Error() string { return string(f) }

// waiting is a source of which nothing is known yet.
type waiting struct{}

// Start implements discovery.Source.
func (waiting) Start(r *discovery.Receiver) (discovery.Started, error) {
	r.Trying("waiting for the cluster")
	return discovery.Started{}, nil
}

// Check implements discovery.Source.
func (waiting) Check(bool) error { return nil }
