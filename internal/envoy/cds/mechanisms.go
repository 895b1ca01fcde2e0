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

// Maker turns clusters into discovery mechanisms. Set its exported fields before use. Not safe for
// concurrent use.
type Maker struct {
	// Target is the channel's target. Its options also apply to the sources we create.
	Target *discovery.Target
	// EDS returns the source of a ClusterLoadAssignment.
	EDS func(service string) (discovery.Source, error)
	// Scope identifies a management server. EDS sources are never equal if their scopes differ, so
	// the endpoints of two servers don't get mixed up.
	Scope int

	previous map[string]discovery.Source // sources that the last call of Mechanisms used, by key
	current  map[string]discovery.Source // sources that the current call has used so far
}

type Known struct {
	// Cluster is nil if we haven't received it yet, or if Err is set.
	Cluster *Cluster
	Err     error
	// NoEndpoints, if set, makes us refuse the cluster's endpoints and keep the last ones.
	NoEndpoints error
}

type Mechanism struct {
	clusters.Entry
	Cluster     *Cluster // nil if it hasn't been read yet, or couldn't be
	NoEndpoints error    // see Known
}

// Graph is the result of resolving a cluster. It must not be modified.
type Graph struct {
	List  []Mechanism
	Known map[string]Known
	Asked []string // names of the clusters we looked up, in that order
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

// Mechanisms returns the discovery mechanisms of a resolved cluster. There's at least one.
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
		return m.reuse("waiting", discovery.Answer{}, func() (discovery.Source, error) {
			return reportSource(func(r *discovery.Receiver) { r.Trying("waiting for the cluster") }), nil
		})
	case e.Err != nil || e.NoEndpoints != nil:
		return m.failing(cmp.Or(e.Err, e.NoEndpoints))
	}
	c := e.Cluster
	switch c.Kind {
	case EDS:
		return m.reuse(fmt.Sprint("eds ", m.Scope, " ", c.Service), discovery.Answer{}, func() (discovery.Source, error) { return m.EDS(c.Service) })
	case LogicalDNS:
		return m.dns(c.Host)
	}
	// If a cluster is edited, it needs a new source. All others keep theirs, since their keys don't
	// change, and we don't have to look up their names again.
	return m.reuse(fmt.Sprintf("%d %q %s", c.Kind, c.Name, c.Answer.Identity), c.Answer, func() (discovery.Source, error) {
		if c.Kind == StrictDNS {
			if s := newStrict(c, m.dns); len(s.hosts) > 0 {
				return s, nil
			}
		}
		return reportSource(func(r *discovery.Receiver) { _ = r.Update(c.Answer) }), nil
	})
}

// held is the answer that the source has in memory, if any.
func (m *Maker) reuse(key string, held discovery.Answer, create func() (discovery.Source, error)) discovery.Source {
	if s, ok := m.current[key]; ok {
		return s
	}
	s, ok := m.previous[key]
	if !ok {
		created, err := create()
		if err != nil {
			return m.failing(err)
		}
		s = &comparableSource{created, topology.Size(&held)}
	}
	m.current[key] = s
	return s
}

// Sources don't have to be comparable, but a pointer to one of these is.
type comparableSource struct {
	discovery.Source
	size int
}

// Size returns the number of endpoints in memory. Package join asks for it when it stores the answers of idle
// channels.
func (o *comparableSource) Size() int { return o.size }

// We use the source of a failover target here, because it supports proxies.
func (m *Maker) dns(host string) discovery.Source {
	return m.reuse("dns "+host, discovery.Answer{}, func() (discovery.Source, error) {
		list := (&url.URL{Scheme: "dns", Path: "/" + host}).String()
		mechanisms, err := m.Target.Mechanisms(nil, resolver.Target{URL: url.URL{Scheme: failover.Scheme, Path: "/" + list, RawPath: "/" + url.PathEscape(list)}})
		if err != nil {
			return nil, err
		}
		return mechanisms[0].Source, nil
	})
}

// If a cluster is invalid, only its own mechanism should fail, so we give it a source that fails.
func (m *Maker) failing(err error) discovery.Source {
	return m.reuse("failing "+err.Error(), discovery.Answer{}, func() (discovery.Source, error) {
		return reportSource(func(r *discovery.Receiver) { r.Fail(err) }), nil
	})
}

// reportSource is a source that reports once and then does nothing.
type reportSource func(*discovery.Receiver)

func (s reportSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	s(r)
	return discovery.Started{}, nil
}

func (reportSource) Check(bool) error { return nil }
