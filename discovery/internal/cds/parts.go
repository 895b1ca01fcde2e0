package cds

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"weak"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/resolver"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/internal/core/clusters"
	"github.com/understudy-lb/understudy/internal/feed"
	"github.com/understudy-lb/understudy/topology"
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
	Explain func(*topology.Invalid) error
}

// Parts returns the parts of a cluster (gRFC A37), at least one, and the names of the
// clusters that it looked at. Explain, which may be nil, says more of an entry's error.
func (m *Maker) Parts(first string, find func(name string) Known, explain func(clusters.Entry) error) (parts []discovery.Part, asked []string) {
	known := make(map[string]Known)
	list, asked := clusters.Resolve(first, func(name string) clusters.Cluster {
		k := find(name)
		known[name] = k
		switch {
		case k.Err != nil:
			return clusters.Cluster{Err: k.Err}
		case k.Cluster == nil:
			return clusters.Cluster{Waiting: true}
		}
		return clusters.Cluster{Children: k.Cluster.Children}
	})
	m.used = make(map[string]discovery.Source)
	for _, e := range list {
		part := discovery.Part{Name: e.Name, Source: m.source(e, known[e.Name], explain)}
		if c := known[e.Name].Cluster; c != nil {
			part.OutlierDetection = c.OutlierDetection
		}
		parts = append(parts, part)
	}
	m.sources = m.used
	return parts, asked
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
		return m.same(contentOf("static", c), func() (discovery.Source, error) { return newStatic(c.Assignment, k.Explain), nil })
	}
}

// contentOf returns what tells a cluster with endpoints from what it was before: an edit of
// another must not have its names looked up again.
func contentOf(kind string, c *Cluster) string {
	content, err := feed.Encoded(c.Assignment)
	if err != nil { // it was decoded before
		return fmt.Sprintf("%s %p", kind, c)
	}
	return fmt.Sprintf("%s %q %x", kind, c.Name, sha256.Sum256(content))
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

// dns returns the source for a name in DNS: that of a part of a failover: target, which
// knows of proxies.
func (m *Maker) dns(host string) discovery.Source {
	return m.same("dns "+host, func() (discovery.Source, error) {
		list := url.PathEscape((&url.URL{Scheme: "dns", Path: "/" + host}).String())
		parts, err := m.Target.Parts(failover.NewBuilder(), resolver.Target{URL: url.URL{
			Scheme: failover.Scheme, Path: "/dns:///" + host, RawPath: "/" + list,
		}})
		if err != nil {
			return nil, err
		}
		return parts[0].Source, nil
	})
}

// static is a source that answers once. It outlives what its cluster was read from, also while
// the channel is idle, and has it encoded, which takes a tenth of the memory.
type static struct {
	encoded []byte
	cluster weak.Pointer[endpointv3.ClusterLoadAssignment] // as long as somebody else has it
	explain func(*topology.Invalid) error
}

func newStatic(cluster *endpointv3.ClusterLoadAssignment, explain func(*topology.Invalid) error) discovery.Source {
	encoded, err := feed.Encoded(cluster)
	if err != nil { // it was decoded before
		return failing(err.Error())
	}
	return &static{encoded, weak.Make(cluster), explain}
}

// Size returns how many bytes it takes.
func (s *static) Size() int { return len(s.encoded) }

// Start implements discovery.Source.
func (s *static) Start(r discovery.Receiver) (discovery.Watch, error) {
	cluster := s.cluster.Value()
	if cluster == nil {
		cluster = new(endpointv3.ClusterLoadAssignment)
		if err := proto.Unmarshal(s.encoded, cluster); err != nil {
			return nil, err
		}
	}
	_ = r.Update(discovery.Answer{Cluster: cluster, Empty: true, Explain: s.explain}) // the next one comes from another source
	return closed{}, nil
}

// failing is a source that has no endpoints, and says why.
type failing string

// Start implements discovery.Source.
func (f failing) Start(r discovery.Receiver) (discovery.Watch, error) {
	r.Fail(f)
	return closed{}, nil
}

func (f failing) Error() string { return string(f) }

// waiting is a source of which nothing is known yet.
type waiting struct{}

// Start implements discovery.Source.
func (waiting) Start(discovery.Receiver) (discovery.Watch, error) { return closed{}, nil }

// closed is a source that does nothing any more.
type closed struct{}

// Close implements discovery.Watch.
func (closed) Close() {}
