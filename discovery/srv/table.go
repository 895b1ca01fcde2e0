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
	stored      map[string]discovery.Name // from before the channel was idle; nil after the first complete lookup
}

type host struct {
	addresses names.Lingering[netip.Addr, netip.Addr]
	names.Held
	hasNoAddress bool // whether the last response contained no address
}

// recordKey identifies a record, whose priority and weight may change.
type recordKey struct {
	host string
	port uint16
}

// markUnconfirmed marks all hosts as unconfirmed, because the lookup of the records has failed.
func (t *table) markUnconfirmed() {
	for _, h := range t.hosts {
		h.RecordFailure(time.Now())
	}
}

// apply applies a complete answer and returns the endpoints to use from now on.
func (t *table) apply(name string, a answer) discovery.Answer {
	previous := t.hosts
	t.hosts = make(map[string]*host)
	records := t.records.Next(t.removeAfter, a.records, func(r record) recordKey { return recordKey{r.host, r.port} })
	for _, r := range records {
		if t.hosts[r.host] != nil {
			continue
		}
		known := previous[r.host]
		if known == nil {
			known = t.restoreHost(r.host, a.hosts[r.host].succeeded)
		}
		known.apply(t.removeAfter, a.hosts[r.host])
		t.hosts[r.host] = known
	}
	slices.SortStableFunc(records, func(a, b record) int { return int(a.priority) - int(b.priority) })
	return t.answer(name, records)
}

// apply applies the result of the lookup of a host. If the lookup of one address family failed, the
// known addresses of that family stay in use.
func (h *host) apply(removeAfter int, f hostAddresses) {
	if f.succeeded == [2]bool{} {
		h.RecordFailure(time.Now())
		return
	}
	addresses, keepsOld := f.addresses, false
	for _, ip := range h.addresses.Values() {
		if !f.succeeded[familyOf(ip)] {
			addresses, keepsOld = append(slices.Clip(addresses), ip), true
		}
	}
	h.addresses.Next(removeAfter, addresses, netip.Addr.Unmap)
	h.hasNoAddress = len(addresses) == 0
	if keepsOld {
		h.RecordFailure(time.Now())
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

// restoreHost returns a host with the stored addresses, except those of a family whose lookup has
// succeeded.
func (t *table) restoreHost(name string, found [2]bool) *host {
	h, known := &host{}, t.stored[name]
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
		if !h.hasNoAddress { // otherwise, removed addresses would be used again after idle mode
			for _, ip := range h.addresses.Values() {
				known.Addresses = append(known.Addresses, ip.String())
			}
		}
		all[name] = known
	}
	return all
}

// answer returns an answer with the endpoints of the records, which are sorted by priority. Each
// priority has a locality with a distinct name, so that its connections survive when a higher
// priority is added or removed. Empty is always set, because lookUp passes an answer without
// endpoints only if the service has no records.
func (t *table) answer(name string, records []record) discovery.Answer {
	answer := discovery.Answer{Service: name, Empty: true, Why: fmt.Sprintf("the SRV records of %s name no server", name)}
	used := make(map[netip.AddrPort]bool)
	for start := 0; start < len(records); {
		priority := records[start].priority
		end := start
		for end < len(records) && records[end].priority == priority {
			end++
		}
		if endpoints := t.endpoints(records[start:end], used); len(endpoints) > 0 {
			answer.Priorities = append(answer.Priorities, discovery.Priority{Localities: []discovery.Locality{{
				Region:    fmt.Sprintf("SRV priority %d", priority),
				Endpoints: endpoints,
			}}})
		}
		start = end
	}
	return answer
}

// endpoints returns the endpoints of the records of one priority. It omits the addresses in used,
// and adds all other addresses to used.
func (t *table) endpoints(records []record, used map[netip.AddrPort]bool) []discovery.Endpoint {
	var endpoints []discovery.Endpoint
	weights := weightsOf(records)
	for i, r := range records {
		e := discovery.Endpoint{Hostname: r.name(), Weight: weights[i]}
		for _, ip := range t.hosts[r.host].addresses.Values() {
			address := netip.AddrPortFrom(ip.Unmap(), r.port)
			if !used[address] {
				e.Addresses = append(e.Addresses, address.String())
			}
			used[address] = true
		}
		if len(e.Addresses) > 0 {
			endpoints = append(endpoints, e)
		}
	}
	return endpoints
}

// weightsOf returns the weights of the records of one priority. A record of weight 0 gets a tenth
// of the share of weight 1:
//
//	3 1    ->  3 1
//	3 1 0  ->  30 10 1
//	0 0    ->  1 1
func weightsOf(records []record) []uint32 {
	const tenth = 10
	isZero := func(r record) bool { return r.weight == 0 }
	factor := uint32(1)
	if slices.ContainsFunc(records, isZero) {
		factor = tenth
	}
	// The weights of the records in one DNS message cannot exceed the limit of a locality. With
	// removeAfter, however, records may come from several messages.
	divisor := uint64(len(records))*math.MaxUint16*tenth/math.MaxUint32 + 1
	weights := make([]uint32, len(records))
	for i, r := range records {
		weights[i] = max(uint32(uint64(r.weight)*uint64(factor)/divisor), 1)
	}
	return weights
}
