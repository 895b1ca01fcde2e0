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

func (r record) key() recordKey { return recordKey{r.host, r.port} }

// merged returns the records with distinct keys. Records of one target and priority become one with
// the sum of their weights, because package net returns them in random order.
func merged(records []record) []record {
	var list []record
	index := make(map[recordKey]int)
	for _, r := range records {
		i, known := index[r.key()]
		switch {
		case !known:
			index[r.key()] = len(list)
			list = append(list, r)
		case r.priority == list[i].priority:
			list[i].weight += r.weight
		case r.priority < list[i].priority:
			list[i] = r
		}
	}
	return list
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
	records := t.records.Next(t.removeAfter, merged(a.records), record.key)
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

// endpoints returns the endpoints of the records of one priority. Each address that is not in used
// is an endpoint, and is then added to used.
func (t *table) endpoints(records []record, used map[netip.AddrPort]bool) []discovery.Endpoint {
	addresses := make([][]netip.AddrPort, len(records))
	for i, r := range records {
		for _, ip := range t.hosts[r.host].addresses.Values() {
			if address := netip.AddrPortFrom(ip.Unmap(), r.port); !used[address] {
				addresses[i] = append(addresses[i], address)
			}
		}
	}
	var endpoints []discovery.Endpoint
	var weights []float64
	index := make(map[netip.AddrPort]int)
	shares := sharesOf(records, addresses)
	for i, r := range records {
		for _, address := range addresses[i] {
			at, known := index[address]
			if !known {
				at = len(endpoints)
				index[address], used[address] = at, true
				endpoints = append(endpoints, discovery.Endpoint{Addresses: []string{address.String()}, Hostname: r.name()})
				weights = append(weights, 0)
			}
			weights[at] += shares[i]
		}
	}
	for i, w := range weights {
		endpoints[i].Weight = max(uint32(math.Round(w)), 1)
	}
	return endpoints
}

// sharesOf returns what each address of a record gets of the record's weight, for the records of
// one priority. A record of weight 0 counts as a tenth of weight 1, and an address of several
// records gets the sum. The shares are whole numbers, unless these exceed the limit of a locality:
//
//	3 a, 1 b            ->  a*3 b*1
//	3 a, 1 b, 0 c       ->  a*30 b*10 c*1
//	0 a, 0 b            ->  a*1 b*1
//	3 a1 a2 a3, 2 b     ->  a1*3 a2*3 a3*3 b*6
//	3 a, 2 a b          ->  a*8 b*2
func sharesOf(records []record, addresses [][]netip.AddrPort) []float64 {
	weightOne := 1.0
	if slices.ContainsFunc(records, func(r record) bool { return r.weight == 0 }) {
		weightOne = 10
	}
	shares, scale := make([]float64, len(records)), 1.0
	sum, count := 0.0, 0.0
	for i, r := range records {
		n := float64(len(addresses[i]))
		if n == 0 {
			continue
		}
		shares[i] = max(float64(r.weight)*weightOne, 1) / n
		sum, count = sum+shares[i]*n, count+n
		if scale < math.MaxUint32 {
			scale = leastCommonMultiple(scale, n)
		}
	}
	scale = min(scale, (math.MaxUint32-count)/sum) // leaves room to raise each weight to at least 1
	for i := range shares {
		shares[i] *= scale
	}
	return shares
}

func leastCommonMultiple(a, b float64) float64 {
	x, y := a, b
	for y > 0 {
		x, y = y, math.Mod(x, y)
	}
	return a / x * b
}
