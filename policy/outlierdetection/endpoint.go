package outlierdetection

import (
	"slices"
	"sync/atomic"

	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	identity "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/lb/inorder"
)

// endpoint is an entry of A50's map. An endpoint with several addresses has a single entry (A61).
type endpoint = core.Endpoint[endpointStats]

type key = identity.Key

type endpointStats struct {
	counter
	key       key
	name      string
	addresses []resolver.Address
	subConns  []*subConn // guarded by subConns.mu
	list      uint32     // value of subConns.lists for the last list that contained the endpoint; guarded by subConns.mu
	update    uint32     // value of policy.updates for the last list that contained the endpoint

	ejectionLogged bool

	// period is the one to which calls that begin now belong. Each pick reads it. It is not on the
	// same cache line as the counters above, which the end of each call writes.
	period atomic.Pointer[period]
}

// counter counts calls when they end. A50 has two buckets and swaps them at each interval. Here,
// the counts are read and cleared instead, so that a call costs only one addition.
type counter struct {
	successes, failures atomic.Uint64
	since               atomic.Uint64 // number of the period in which the first consecutive failure was counted
	consecutive, code   atomic.Uint32
}

func (c *counter) swap() (successes, failures uint64) {
	return c.successes.Swap(0), c.failures.Swap(0)
}

func (c *counter) reset() {
	c.swap()
	c.consecutive.Store(0)
}

// list returns the map entries of the endpoints, without duplicates. Known endpoints keep their
// entries. If the entries and their addresses are the same as in the last list, list sets p.bound,
// because the subchannels need not be assigned again.
func (p *policy) list(endpoints []resolver.Endpoint) []*endpoint {
	if p.known == nil {
		p.known = make(map[key]*endpoint, len(endpoints))
	}
	p.updates++
	p.bound = p.assigned != nil
	p.added, p.removed = nil, nil
	list := make([]*endpoint, 0, len(endpoints))
	var unchanged, search inorder.Search
	var addresses []identity.Address // reused for all endpoints; a key does not retain it
	for _, given := range endpoints {
		var e *endpoint
		if i := unchanged.Find(len(p.assigned), func(i int) bool { return p.assigned[i].Attached.isUnchanged(given.Addresses) }); i >= 0 {
			e = p.assigned[i]
		} else {
			addresses = addresses[:0]
			for _, a := range hierarchy.Addresses(given) {
				addresses = append(addresses, identity.Address{Addr: a.Addr, ServerName: a.ServerName})
			}
			if len(addresses) == 0 {
				continue
			}
			name := addresses[0].Addr
			e = p.entry(&search, identity.KeyOf(addresses))
			e.Attached.name = name
		}
		if e.Attached.update == p.updates {
			continue
		}
		at, same := len(list), shared(e.Attached.addresses, given.Addresses)
		p.bound = p.bound && at < len(p.assigned) && p.assigned[at] == e && same
		if !same {
			p.setAddresses(e, given.Addresses)
		}
		if e.Attached.update == 0 {
			p.added = append(p.added, e)
		}
		e.Attached.update = p.updates
		list = append(list, e)
	}
	if p.bound = p.bound && len(list) == len(p.assigned); p.bound {
		return p.assigned
	}
	if len(p.known) > len(list) {
		for _, e := range p.assigned {
			if e.Attached.update != p.updates {
				delete(p.known, e.Attached.key)
				p.removed = append(p.removed, e)
			}
		}
	}
	return list
}

func (b *subConns) setAddresses(e *endpoint, addresses []resolver.Address) {
	b.mu.Lock() // find reads the addresses
	defer b.mu.Unlock()
	isSame := func(a, b resolver.Address) bool { return a.Addr == b.Addr }
	b.stale = b.stale || e.Attached.update > 0 && !slices.EqualFunc(e.Attached.addresses, addresses, isSame)
	e.Attached.addresses = addresses
}

// entry returns the map entry with a key. It finds an endpoint near its place in the last list
// without a lookup in the map.
func (p *policy) entry(search *inorder.Search, k key) *endpoint {
	if i := search.Find(len(p.assigned), func(i int) bool { return p.assigned[i].Attached.key == k }); i >= 0 {
		return p.assigned[i]
	}
	e := p.known[k]
	if e == nil {
		e = &endpoint{Attached: endpointStats{key: k}}
		p.known[k] = e
	}
	return e
}

// isUnchanged reports whether the endpoint is known to have these addresses. The key is compared
// because a resolver may change its list in place.
func (s *endpointStats) isUnchanged(addresses []resolver.Address) bool {
	return len(addresses) == 1 && shared(s.addresses, addresses) &&
		s.key == identity.KeyOf([]identity.Address{{Addr: addresses[0].Addr, ServerName: addresses[0].ServerName}})
}

func shared(a, b []resolver.Address) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
