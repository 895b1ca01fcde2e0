package srv

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy/internal/feed"
	"github.com/understudy-lb/understudy/internal/linger"
)

// table holds what is known of the records and addresses of a service.
type table struct {
	removeAfter int
	records     linger.Set[recordKey, record]
	hosts       map[string]*host
	remembered  feed.Names // of the channel before this one, until all hosts were looked up once
}

// host holds what is known of a record's target.
type host struct {
	addresses linger.Set[netip.Addr, netip.Addr]
	until     time.Time // until when it could be looked up, zero where it still can
	none      bool      // DNS said last that it has no address
}

// recordKey tells a record from others: it may change its priority and weight.
type recordKey struct {
	host string
	port uint16
}

// lose notes that the host could not be looked up.
func (h *host) lose() {
	if h.until.IsZero() {
		h.until = time.Now()
	}
}

// lose notes that no host could.
func (t *table) lose() {
	for _, h := range t.hosts {
		h.lose()
	}
}

// take takes an answer, and returns the endpoints that there are now.
func (t *table) take(name string, a answer) *endpointv3.ClusterLoadAssignment {
	before := t.hosts
	t.hosts = make(map[string]*host)
	records := t.records.Next(t.removeAfter, a.records, func(r record) recordKey { return recordKey{r.host, r.port} })
	for _, r := range records {
		if t.hosts[r.host] != nil {
			continue
		}
		known := before[r.host]
		if known == nil {
			known = t.recall(r.host, a.hosts[r.host].known)
		}
		known.take(t.removeAfter, a.hosts[r.host])
		t.hosts[r.host] = known
	}
	slices.SortStableFunc(records, func(a, b record) int { return int(a.priority) - int(b.priority) })
	return t.cluster(name, records)
}

// take takes what a look-up of the host found. Addresses of a family that could not be looked
// up stay.
func (h *host) take(removeAfter int, f found) {
	if f.known == [2]bool{} {
		h.lose()
		return
	}
	addresses, kept := f.addresses, false
	for _, ip := range h.addresses.Values() {
		if !f.known[familyOf(ip)] {
			addresses, kept = append(slices.Clip(addresses), ip), true
		}
	}
	h.addresses.Next(removeAfter, addresses, netip.Addr.Unmap)
	h.none = len(addresses) == 0
	if kept {
		h.lose()
		return
	}
	h.until = time.Time{}
}

// clone returns a copy of t, which can take an answer that is not yet complete.
func (t *table) clone() *table {
	c := *t
	c.records = t.records.Clone()
	c.hosts = make(map[string]*host, len(t.hosts))
	for name, h := range t.hosts {
		h := *h
		h.addresses = h.addresses.Clone()
		c.hosts[name] = &h
	}
	return &c
}

// recall returns what was remembered of a host, if anything, of the families that could not be
// looked up.
func (t *table) recall(name string, found [2]bool) *host {
	h, known := &host{}, t.remembered[name]
	h.until = known.Until
	var addresses []netip.Addr
	for _, text := range known.Addresses {
		if ip, err := netip.ParseAddr(text); err == nil && !found[familyOf(ip)] {
			addresses = append(addresses, ip)
		}
	}
	h.addresses.Next(t.removeAfter, addresses, netip.Addr.Unmap)
	return h
}

// names returns what is to be remembered of the hosts.
func (t *table) names() feed.Names {
	names := make(feed.Names, len(t.hosts))
	for name, h := range t.hosts {
		known := feed.Name{Until: h.until}
		if !h.none { // what lingers then is not to come back
			for _, ip := range h.addresses.Values() {
				known.Addresses = append(known.Addresses, ip.String())
			}
		}
		names[name] = known
	}
	return names
}

// cluster returns the endpoints of records, which are in the order of their priorities.
// Each priority has a locality of its own name, by which its connections are known when
// those above it come or go.
func (t *table) cluster(name string, records []record) *endpointv3.ClusterLoadAssignment {
	cluster := &endpointv3.ClusterLoadAssignment{ClusterName: name}
	taken := make(map[netip.AddrPort]bool)
	for first := 0; first < len(records); {
		priority := records[first].priority
		end := first
		for end < len(records) && records[end].priority == priority {
			end++
		}
		locality := &endpointv3.LocalityLbEndpoints{
			Locality:            &corev3.Locality{Region: fmt.Sprintf("SRV priority %d", priority)},
			Priority:            uint32(len(cluster.GetEndpoints())),
			LoadBalancingWeight: wrapperspb.UInt32(1),
			LbEndpoints:         t.endpoints(records[first:end], taken),
		}
		if len(locality.GetLbEndpoints()) > 0 {
			cluster.Endpoints = append(cluster.Endpoints, locality)
		}
		first = end
	}
	return cluster
}

// endpoints returns the endpoints of the records of one priority. It leaves out addresses
// that are taken, and takes those that it returns.
func (t *table) endpoints(records []record, taken map[netip.AddrPort]bool) []*endpointv3.LbEndpoint {
	var endpoints []*endpointv3.LbEndpoint
	weights := weightsOf(records)
	for i, r := range records {
		e := &endpointv3.Endpoint{Hostname: r.name()}
		for _, ip := range t.hosts[r.host].addresses.Values() {
			at := netip.AddrPortFrom(ip.Unmap(), r.port)
			switch {
			case taken[at]:
				continue
			case e.GetAddress() == nil:
				e.Address = socket(at)
			default:
				e.AdditionalAddresses = append(e.AdditionalAddresses, &endpointv3.Endpoint_AdditionalAddress{Address: socket(at)})
			}
			taken[at] = true
		}
		if e.GetAddress() != nil {
			endpoints = append(endpoints, &endpointv3.LbEndpoint{
				HostIdentifier:      &endpointv3.LbEndpoint_Endpoint{Endpoint: e},
				LoadBalancingWeight: wrapperspb.UInt32(weights[i]),
			})
		}
	}
	return endpoints
}

// weightsOf returns the weights of records of one priority. A record of weight 0 gets the
// least share, not none.
//
//	3 1    ->  3 1
//	3 1 0  ->  30 10 1
//	0 0    ->  1 1
func weightsOf(records []record) []uint32 {
	const tenth = 10
	zero := func(r record) bool { return r.weight == 0 }
	factor := uint32(1)
	if slices.ContainsFunc(records, zero) {
		factor = tenth
	}
	// They fit into a locality if they are of one message. Records of several may be there.
	by := uint64(len(records))*math.MaxUint16*tenth/math.MaxUint32 + 1
	weights := make([]uint32, len(records))
	for i, r := range records {
		weights[i] = max(uint32(uint64(r.weight)*uint64(factor)/by), 1)
	}
	return weights
}

func socket(at netip.AddrPort) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       at.Addr().String(),
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(at.Port())},
	}}}
}
