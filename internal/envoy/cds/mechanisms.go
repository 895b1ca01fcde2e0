package cds

import (
	"cmp"
	"fmt"
	"net/url"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/core/clusters"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
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

	previous map[string]discovery.Source // the sources that the last call of Mechanisms used, by key
	current  map[string]discovery.Source // the sources that the current call uses, by key
}

// DNS holds the default settings for periodic lookups of the names in clusters.
var DNS = discovery.Refresh{RemoveAfter: 2}

// Known is the state of a cluster.
type Known struct {
	// Cluster is nil if the cluster has not been received yet, or if Err is set.
	Cluster *Cluster
	Err     error
	// NoEndpoints, if set, refuses the endpoints of the cluster, which then keeps the last ones.
	NoEndpoints error
}

// Mechanism is a discovery mechanism of a resolved cluster.
type Mechanism struct {
	clusters.Entry
	Cluster     *Cluster // nil if it could not be read yet or at all
	NoEndpoints error    // see Known
}

// Graph is the result of resolving a cluster. It must not be modified.
type Graph struct {
	List  []Mechanism
	Known map[string]Known
	Asked []string // names of the clusters that were requested, in this order
	Notes error    // about fields of these clusters that have no effect, or nil
}

// Resolve resolves a cluster and its descendants (gRFC A37).
func Resolve(first string, lookup func(name string) Known) *Graph {
	g, notes := &Graph{Known: make(map[string]Known)}, new(messages.Invalid)
	entries, asked := clusters.Resolve(first, func(name string) clusters.Cluster {
		k := lookup(name)
		g.Known[name] = k
		c := clusters.Cluster{Err: k.Err, Waiting: k.Err == nil && k.Cluster == nil}
		if k.Cluster != nil {
			c.Children = k.Cluster.Children
			notes.Merge(fmt.Sprintf("cluster %q", name), &messages.Invalid{Problems: k.Cluster.Notes})
		}
		return c
	})
	g.Asked = asked
	g.Notes = notes.Err()
	for _, e := range entries {
		k := g.Known[e.Name]
		g.List = append(g.List, Mechanism{e, k.Cluster, k.NoEndpoints})
	}
	return g
}

// Mechanisms returns the discovery mechanisms of a resolved cluster. There is at least one.
func (m *Maker) Mechanisms(g *Graph) (mechanisms []discovery.Mechanism) {
	m.current = make(map[string]discovery.Source)
	for _, e := range g.List {
		mechanism := discovery.Mechanism{Name: e.Name, Source: m.source(e)}
		if e.Cluster != nil {
			mechanism.OutlierDetection = topology.OutlierDetectionJSON(e.Cluster.OutlierDetection)
		}
		mechanisms = append(mechanisms, mechanism)
	}
	m.previous = m.current
	return mechanisms
}

func (m *Maker) source(e Mechanism) discovery.Source {
	switch {
	case e.Waiting:
		return m.reuse("waiting", 1, func() (discovery.Source, error) {
			return reportSource(func(r *discovery.Receiver) { r.Trying("waiting for the cluster") }), nil
		})
	case e.Err != nil || e.NoEndpoints != nil:
		return m.failing(cmp.Or(e.Err, e.NoEndpoints))
	}
	c := e.Cluster
	switch c.Kind {
	case EDS:
		return m.reuse(fmt.Sprint("eds ", m.Scope, " ", c.Service), 1, func() (discovery.Source, error) { return m.EDS(c.Service) })
	case LogicalDNS:
		return m.dns(c.Host)
	}
	// An edited cluster gets a new source. When another cluster is edited, the key and therefore the
	// source stay the same, so the names are not looked up again.
	return m.reuse(fmt.Sprintf("%d %q %s", c.Kind, c.Name, c.Answer.Identity), topology.Size(&c.Answer), func() (discovery.Source, error) {
		if c.Kind == StrictDNS {
			if s := newStrict(c, m.dns); len(s.hosts) > 0 {
				return s, nil
			}
		}
		return reportSource(func(r *discovery.Receiver) { _ = r.Update(c.Answer) }), nil
	})
}

func (m *Maker) reuse(key string, size int, create func() (discovery.Source, error)) discovery.Source {
	if s, ok := m.current[key]; ok {
		return s
	}
	s, ok := m.previous[key]
	if !ok {
		created, err := create()
		if err != nil {
			return m.failing(err)
		}
		s = &comparableSource{created, size}
	}
	m.current[key] = s
	return s
}

// comparableSource wraps a source. A *comparableSource is comparable, whereas a source need not be.
type comparableSource struct {
	discovery.Source
	size int
}

// Size returns the number of endpoints, for the store that keeps the answers of idle channels.
func (o *comparableSource) Size() int { return o.size }

// dns returns the source that looks up a DNS name. It uses the source of a failover target, because
// this source supports proxies.
func (m *Maker) dns(host string) discovery.Source {
	return m.reuse("dns "+host, 1, func() (discovery.Source, error) {
		list := (&url.URL{Scheme: "dns", Path: "/" + host}).String()
		mechanisms, err := m.Target.Mechanisms(nil, resolver.Target{URL: url.URL{Scheme: failover.Scheme, Path: "/" + list, RawPath: "/" + url.PathEscape(list)}})
		if err != nil {
			return nil, err
		}
		return mechanisms[0].Source, nil
	})
}

// failing returns a source that fails with an error. An invalid cluster must fail only its own
// discovery mechanism.
func (m *Maker) failing(err error) discovery.Source {
	return m.reuse("failing "+err.Error(), 1, func() (discovery.Source, error) {
		return reportSource(func(r *discovery.Receiver) { r.Fail(err) }), nil
	})
}

// reportSource is a source that makes a single report.
type reportSource func(*discovery.Receiver)

func (s reportSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	s(r)
	return discovery.Started{}, nil
}

func (reportSource) Check(bool) error { return nil }
