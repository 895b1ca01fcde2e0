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

// table holds what is known of the records and addresses of a service.
type table struct {
	removeAfter int
	records     names.Lingering[recordKey, record]
	hosts       map[string]*host
	remembered  map[string]discovery.Name // of the channel before this one, until all hosts were looked up once
}

// host holds what is known of a record's target.
type host struct {
	addresses names.Lingering[netip.Addr, netip.Addr]
	names.Held
	none bool // DNS said last that it has no address
}

// recordKey tells a record from others: it may change its priority and weight.
type recordKey struct {
	host string
	port uint16
}

// lose notes that no host could.
func (t *table) lose() {
	for _, h := range t.hosts {
		h.Lose(time.Now())
	}
}

// take takes an answer, and returns the endpoints that there are now.
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

// take takes what a look-up of the host found. Addresses of a family that could not be looked
// up stay.
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

// names returns what is to be remembered of the hosts.
func (t *table) names() map[string]discovery.Name {
	all := make(map[string]discovery.Name, len(t.hosts))
	for name, h := range t.hosts {
		known := discovery.Name{Until: h.Until}
		if !h.none { // what lingers then is not to come back
			for _, ip := range h.addresses.Values() {
				known.Addresses = append(known.Addresses, ip.String())
			}
		}
		all[name] = known
	}
	return all
}

// answer returns the endpoints of records, which are in the order of their priorities.
// Each priority has a locality of its own name, by which its connections are known when
// those above it come or go. No endpoint is meant only where the records say so.
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

// endpoints returns the endpoints of the records of one priority. It leaves out addresses
// that are taken, and takes those that it returns.
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
