package srv

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/core/names"
)

// table holds the known records of a service and the addresses of their hosts.
type table struct {
	removeAfter int
	records     names.Lingering[recordKey, record]
	hosts       map[string]*host
	remembered  map[string]discovery.Name // addresses stored while the channel was idle; nil after the first complete lookup
}

type host struct {
	addresses names.Lingering[netip.Addr, netip.Addr]
	names.Held
	none bool // according to the last response, the host has no address
}

// recordKey identifies a record. The record's priority and weight may change.
type recordKey struct {
	host string
	port uint16
}

// lose marks all hosts as unconfirmed, because the lookup of the records has failed.
func (t *table) lose() {
	for _, h := range t.hosts {
		h.Lose(time.Now())
	}
}

// take applies a complete answer and returns the endpoints to use from now on.
func (t *table) take(name string, a answer) discovery.Answer {
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
	return t.answer(name, records)
}

// take applies the result of a host's lookup. The known addresses of a family whose lookup failed
// stay in use.
func (h *host) take(removeAfter int, f found) {
	if f.known == [2]bool{} {
		h.Lose(time.Now())
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
		h.Lose(time.Now())
		return
	}
	h.Until = time.Time{}
}

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

// recall returns a host with the stored addresses. It omits those of a family whose lookup has
// succeeded.
func (t *table) recall(name string, found [2]bool) *host {
	h, known := &host{}, t.remembered[name]
	h.Until = known.Until
	var addresses []netip.Addr
	for _, text := range known.Addresses {
		if ip, err := netip.ParseAddr(text); err == nil && !found[familyOf(ip)] {
			addresses = append(addresses, ip)
		}
	}
	h.addresses.Next(t.removeAfter, addresses, netip.Addr.Unmap)
	return h
}

func (t *table) names() map[string]discovery.Name {
	all := make(map[string]discovery.Name, len(t.hosts))
	for name, h := range t.hosts {
		known := discovery.Name{Until: h.Until}
		if !h.none { // the addresses of a host without any must not be used again after the channel was idle
			for _, ip := range h.addresses.Values() {
				known.Addresses = append(known.Addresses, ip.String())
			}
		}
		all[name] = known
	}
	return all
}

// answer returns an answer with the endpoints of the records, which are sorted by priority. Each
// priority has a locality with a name of its own, so that its connections survive when a higher
// priority is added or removed. Empty is always set, because lookUp passes on an answer without
// endpoints only if the service has no records.
func (t *table) answer(name string, records []record) discovery.Answer {
	answer := discovery.Answer{Service: name, Empty: true, Why: fmt.Sprintf("the SRV records of %s name no server", name)}
	taken := make(map[netip.AddrPort]bool)
	for first := 0; first < len(records); {
		priority := records[first].priority
		end := first
		for end < len(records) && records[end].priority == priority {
			end++
		}
		if endpoints := t.endpoints(records[first:end], taken); len(endpoints) > 0 {
			answer.Priorities = append(answer.Priorities, discovery.Priority{Localities: []discovery.Locality{{
				Region:    fmt.Sprintf("SRV priority %d", priority),
				Endpoints: endpoints,
			}}})
		}
		first = end
	}
	return answer
}

// endpoints returns the endpoints of the records of one priority. It omits addresses that are in
// taken, and adds all others to taken.
func (t *table) endpoints(records []record, taken map[netip.AddrPort]bool) []discovery.Endpoint {
	var endpoints []discovery.Endpoint
	weights := weightsOf(records)
	for i, r := range records {
		e := discovery.Endpoint{Hostname: r.name(), Weight: weights[i]}
		for _, ip := range t.hosts[r.host].addresses.Values() {
			at := netip.AddrPortFrom(ip.Unmap(), r.port)
			if !taken[at] {
				e.Addresses = append(e.Addresses, at.String())
			}
			taken[at] = true
		}
		if len(e.Addresses) > 0 {
			endpoints = append(endpoints, e)
		}
	}
	return endpoints
}

// weightsOf returns the weights of the records of one priority. A record of weight 0 gets a tenth
// of weight 1.
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
	// The weights in one DNS message cannot exceed the limit for a locality. But with removeAfter,
	// records may come from several messages.
	by := uint64(len(records))*math.MaxUint16*tenth/math.MaxUint32 + 1
	weights := make([]uint32, len(records))
	for i, r := range records {
		weights[i] = max(uint32(uint64(r.weight)*uint64(factor)/by), 1)
	}
	return weights
}
