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

// endpoint is an entry of A50's map. There's one per endpoint, even if it has several addresses
// (A61).
type endpoint = core.Endpoint[endpointStats]

type key = identity.Key

type endpointStats struct {
	counter
	key       key
	name      string
	addresses []resolver.Address
	subConns  []*subConn // guarded by subConns.mu
	list      uint32     // subConns.lists when the endpoint was last in a list; guarded by subConns.mu
	update    uint32     // policy.updates when the endpoint was last in a list

	ejectionLogged bool

	// period is what calls that begin now belong to. Since every pick reads it, we keep it off the
	// cache line of the counters above, which are written whenever a call ends.
	period atomic.Pointer[period]
}

// counter counts calls when they end. A50 swaps two buckets at each interval. We read and clear a
// single set of counts instead, so all that a call costs is one addition.
type counter struct {
	successes, failures atomic.Uint64
	since               atomic.Uint64 // number of the period in which the current row of failures began
	lost                atomic.Uint64 // number of the period that began when a connection was last lost
	consecutive, code   atomic.Uint32
}

func (c *counter) swap() (successes, failures uint64) {
	return c.successes.Swap(0), c.failures.Swap(0)
}

func (c *counter) reset() {
	c.swap()
	c.consecutive.Store(0)
}

// list returns the map entries of the endpoints, without duplicates. Endpoints that we know keep
// their entries. If neither the entries nor their addresses have changed, it sets p.bound to say
// that subchannels don't have to be assigned again.
func (p *policy) list(endpoints []resolver.Endpoint) []*endpoint {
	p.bound = p.assigned != nil
	p.added, p.removed = nil, nil
	same := 0
	for same < min(len(endpoints), len(p.assigned)) && p.assigned[same].Attached.isUnchanged(endpoints[same].Addresses) {
		same++
	}
	if p.bound && same == len(endpoints) && same == len(p.assigned) {
		return p.assigned
	}
	p.updates++
	found, moved := p.find(endpoints, same)
	list := found[:0]
	for i, given := range endpoints {
		e := found[i]
		if e == nil {
			k, ok := hierarchy.KeyOf(given)
			if !ok {
				continue
			}
			if e = moved[k]; e == nil {
				e = &endpoint{Attached: endpointStats{key: k}}
				moved[k] = e
			}
		}
		if e.Attached.update == p.updates {
			continue
		}
		if !shared(e.Attached.addresses, given.Addresses) {
			p.bound = false
			p.setAddresses(e, given)
		}
		if e.Attached.update == 0 {
			p.added = append(p.added, e)
		}
		e.Attached.update = p.updates
		list = append(list, e)
	}
	if p.bound = p.bound && slices.Equal(list, p.assigned); p.bound {
		return p.assigned
	}
	if len(p.assigned) > len(list)-len(p.added) {
		for _, e := range p.assigned {
			if e.Attached.update != p.updates {
				p.removed = append(p.removed, e)
			}
		}
	}
	return list
}

func (b *subConns) setAddresses(e *endpoint, given resolver.Endpoint) {
	b.mu.Lock() // because endpointOf reads the addresses
	defer b.mu.Unlock()
	isSame := func(a, b resolver.Address) bool { return a.Addr == b.Addr }
	b.stale = b.stale || e.Attached.update > 0 && !slices.EqualFunc(e.Attached.addresses, given.Addresses, isSame)
	e.Attached.name, e.Attached.addresses = hierarchy.Addresses(given)[0].Addr, given.Addresses
}

// find looks up the map entries of the endpoints. near has an entry for each endpoint that's still
// close to where it was in the last list, and nil for the rest. moved has the other entries of the
// last list. There usually aren't many of those, so a map of all endpoints would be a waste. The
// first same endpoints are known to be unchanged.
func (p *policy) find(endpoints []resolver.Endpoint, same int) (near []*endpoint, moved map[key]*endpoint) {
	near = make([]*endpoint, len(endpoints))
	copy(near, p.assigned[:same])
	rest := p.assigned[same:]
	anyKnown := false // whether some of moved may be in the last list; usually, they are all new
	var unchanged, search inorder.Search
	for i, given := range endpoints[same:] {
		if at := unchanged.Find(len(rest), func(i int) bool { return rest[i].Attached.isUnchanged(given.Addresses) }); at >= 0 {
			near[same+i] = rest[at]
		} else if k, ok := hierarchy.KeyOf(given); ok {
			if at := search.Find(len(rest), func(i int) bool { return rest[i].Attached.key == k }); at >= 0 {
				near[same+i] = rest[at]
				continue
			}
			if moved == nil {
				moved = make(map[key]*endpoint)
			}
			moved[k] = nil
			isProxied := !shared(given.Addresses, hierarchy.Addresses(given))
			anyKnown = anyKnown || isProxied || p.byAddress == nil || p.ambiguous != nil || p.byAddress[given.Addresses[0].Addr] != nil
		}
	}
	if anyKnown {
		for _, e := range p.assigned {
			if _, ok := moved[e.Attached.key]; ok {
				moved[e.Attached.key] = e
			}
		}
	}
	return near, moved
}

func (s *endpointStats) isUnchanged(addresses []resolver.Address) bool {
	return hierarchy.IsUnchanged(s.key, s.addresses, addresses)
}

func shared(a, b []resolver.Address) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
