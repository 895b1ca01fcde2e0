package outlierdetection

import (
	"sync/atomic"

	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	identity "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/hierarchy"
	"github.com/understudy-lb/understudy/internal/stateattr"
)

// endpoint is an entry of A50's map. An endpoint with several addresses has a single entry (A61).
type endpoint = core.Endpoint[counted]

type key = identity.Key

type counted struct {
	counter
	name      string
	addresses []resolver.Address
	reserve   bool       // the child may leave the endpoint unconnected
	list      uint64     // value of subConns.lists for the last list that contained the endpoint; guarded by subConns.mu
	subConns  []*subConn // guarded by subConns.mu

	// Each pick reads the following fields. They are not on the same cache line as the counters above,
	// which the end of each call writes.
	period   atomic.Pointer[period] // the period to which calls that begin now belong
	unproven atomic.Bool
}

// counter counts calls when they end. A50 has two buckets and swaps them at each interval. Here,
// the counts are read and cleared instead, so that a call costs only one addition.
type counter struct {
	successes, failures atomic.Uint64
	row                 atomic.Uint32
	since               atomic.Uint64 // number of the period in which the first consecutive failure was counted
	code                atomic.Uint32
}

func (c *counter) swap() (successes, failures uint64) {
	return c.successes.Swap(0), c.failures.Swap(0)
}

func (c *counter) reset() {
	c.swap()
	c.row.Store(0)
}

// list returns the map entries of the endpoints, without duplicates. Known endpoints keep their
// entries. If the entries and their addresses are the same as in the last list, it sets p.bound,
// because the subchannels need not be assigned again.
func (p *policy) list(endpoints []resolver.Endpoint) []*endpoint {
	known, list := make(map[key]*endpoint, len(endpoints)), make([]*endpoint, 0, len(endpoints))
	p.bound = p.listed != nil
	var addresses []identity.Address // reused for all endpoints; a key does not retain it
	for _, given := range endpoints {
		addresses = addresses[:0]
		for _, a := range hierarchy.Addresses(given) {
			addresses = append(addresses, identity.Address{Addr: a.Addr, ServerName: a.ServerName})
		}
		if len(addresses) == 0 {
			continue
		}
		name := addresses[0].Addr
		key := identity.KeyOf(addresses)
		if known[key] != nil {
			continue
		}
		e := p.known[key]
		if e == nil {
			e = &endpoint{}
		}
		at := len(list)
		p.bound = p.bound && at < len(p.listed) && p.listed[at] == e && shared(e.Attached.addresses, given.Addresses)
		e.Attached.name, e.Attached.addresses, e.Attached.reserve = name, given.Addresses, stateattr.IsReserve(given)
		known[key] = e
		list = append(list, e)
	}
	p.bound = p.bound && len(list) == len(p.listed)
	p.known, p.listed = known, list
	return list
}

func shared(a, b []resolver.Address) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
