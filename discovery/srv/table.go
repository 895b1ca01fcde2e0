package srv

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/core/names"
)

// table has the records of a service that are in use, and the addresses of their hosts. Calling
// apply on a copy doesn't change the original.
type table struct {
	removeAfter int
	records     names.Lingering[recordKey, record]
	known       map[string]knownName      // by nameOf; apply creates a new map
	stored      map[string]discovery.Name // from before the channel was idle; nil after the first complete lookup
}

// knownName has the addresses of a host in one family.
type knownName struct {
	addresses names.Lingering[netip.Addr, netip.Addr]
	last      []string // from the last successful lookup
	names.Held
}

// recordKey identifies a record even if its priority or weight changes.
type recordKey struct {
	host string
	port uint16
}

func (r record) key() recordKey { return recordKey{r.host, r.port} }

// merged returns one record for each key, which is the one with the highest priority. If several
// have that priority, we add up their weights, because package net returns them in random order.
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

// markUnconfirmed is called when the lookup of the records fails, which affects all addresses.
func (t *table) markUnconfirmed() {
	for name, k := range t.known {
		k.RecordFailure(time.Now())
		t.known[name] = k
	}
}

// apply updates the table after a lookup, and returns the endpoints to use from now on.
func (t *table) apply(service string, a answer) discovery.Answer {
	previous := t.known
	t.known = make(map[string]knownName)
	records := t.records.Next(t.removeAfter, merged(a.records), record.key)
	for _, r := range records {
		for _, family := range families {
			name := nameOf(family, r.host)
			k, isKnown := previous[name]
			if addresses, isFound := a.addresses[name]; isFound {
				k = knownName{addresses: k.addresses}
				k.add(t.removeAfter, addresses)
			} else {
				if !isKnown {
					k = t.restored(name)
				}
				k.RecordFailure(time.Now())
			}
			t.known[name] = k
		}
	}
	slices.SortStableFunc(records, func(a, b record) int { return int(a.priority) - int(b.priority) })
	return t.answer(service, records)
}

func (k *knownName) add(removeAfter int, addresses []netip.Addr) {
	k.addresses.Next(removeAfter, addresses, netip.Addr.Unmap)
	for _, ip := range addresses {
		k.last = append(k.last, ip.String())
	}
}

func (t *table) restored(name string) knownName {
	var addresses []netip.Addr
	for _, text := range t.stored[name].Addresses {
		if ip, err := netip.ParseAddr(text); err == nil {
			addresses = append(addresses, ip)
		}
	}
	k := knownName{Held: names.Held{Until: t.stored[name].Until}}
	k.add(t.removeAfter, addresses)
	return k
}

// addressesOf returns the addresses of a record without duplicates, except for those in used.
func (t *table) addressesOf(r record, used map[netip.AddrPort]bool) (all []netip.AddrPort) {
	for _, family := range families {
		k := t.known[nameOf(family, r.host)]
		for _, ip := range k.addresses.Values() {
			if address := netip.AddrPortFrom(ip.Unmap(), r.port); !used[address] && !slices.Contains(all, address) {
				all = append(all, address)
			}
		}
	}
	return all[:min(len(all), maxAddresses)]
}

// answer expects records to be sorted by priority. Each priority's locality has a name of its own,
// so that its connections survive when a higher priority is added or removed. Empty is always set,
// since lookUp returns an error if there are records but no endpoints.
func (t *table) answer(name string, records []record) discovery.Answer {
	answer := discovery.Answer{Service: name, Empty: true, Why: fmt.Sprintf("the SRV records of %s name no server", name), Names: make(map[string]discovery.Name)}
	for name, k := range t.known {
		answer.Names[name] = discovery.Name{Addresses: k.last, Until: k.Until}
	}
	used := make(map[netip.AddrPort]bool)
	for n := 0; len(records) > 0; records = records[n:] {
		priority := records[0].priority
		for n = 1; n < len(records) && records[n].priority == priority; {
			n++
		}
		if endpoints := t.endpoints(records[:n], used); len(endpoints) > 0 {
			answer.Priorities = append(answer.Priorities, discovery.Priority{Localities: []discovery.Locality{{
				Region:    fmt.Sprintf("SRV priority %d", priority),
				Endpoints: endpoints,
			}}})
		}
	}
	return answer
}

// endpoints returns the endpoints for the records of one priority. It skips addresses in used, and
// adds the ones it returns. The addresses of a record share its weight equally, and an address of
// several records gets the sum. Weight 0 counts as a tenth of weight 1. We scale the weights so that
// they're exact, unless their sum would then exceed the limit of a locality:
//
//	3 a, 1 b            ->  a*3 b*1
//	3 a, 1 b, 0 c       ->  a*30 b*10 c*1
//	0 a, 0 b            ->  a*1 b*1
//	3 a1 a2 a3, 2 b     ->  a1*3 a2*3 a3*3 b*6
//	3 a, 2 a b          ->  a*8 b*2
func (t *table) endpoints(records []record, used map[netip.AddrPort]bool) (endpoints []discovery.Endpoint) {
	unit, scale, sum := 1.0, 1.0, 0.0
	if slices.ContainsFunc(records, func(r record) bool { return r.weight == 0 }) {
		unit = 10
	}
	index := make(map[netip.AddrPort]int)
	var weights []float64
	for _, r := range records {
		weight, addresses := max(float64(r.weight)*unit, 1), t.addressesOf(r, used)
		for _, address := range addresses {
			if _, known := index[address]; !known {
				index[address] = len(endpoints)
				endpoints = append(endpoints, discovery.Endpoint{Addresses: []string{address.String()}, Hostname: strings.TrimSuffix(r.host, ".")})
				weights = append(weights, 0)
			}
			weights[index[address]] += weight / float64(len(addresses))
		}
		if len(addresses) > 0 {
			sum += weight
			if scale < math.MaxUint32 {
				scale = leastCommonMultiple(scale, float64(len(addresses)))
			}
		}
	}
	for address := range index {
		used[address] = true
	}
	scale = min(scale, (math.MaxUint32-float64(len(endpoints)))/sum) // leaves room to raise each weight to 1
	for i, w := range weights {
		endpoints[i].Weight = max(uint32(math.Round(w*scale)), 1)
	}
	return endpoints
}

func leastCommonMultiple(a, b float64) float64 {
	x, y := a, b
	for y > 0 {
		x, y = y, math.Mod(x, y)
	}
	return a / x * b
}
