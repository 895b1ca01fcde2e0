package outlierdetection

import (
	"sync/atomic"

	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	identity "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/hierarchy"
	"github.com/understudy-lb/understudy/internal/stateattr"
)

// endpoint is A50's map entry; one for each endpoint, as A61 has it.
type endpoint = core.Endpoint[counted]

// key identifies an endpoint from update to update: it is the set of its addresses.
type key = identity.Key

// counted is what the shell keeps with an endpoint.
type counted struct {
	counter
	name      string             // its first address
	addresses []resolver.Address // that subchannels are made of
	reserve   bool               // the child may not connect to it
	list      uint64             // the last one that it was bound with, guarded by the policy's subConns.mu
	subConns  []*subConn         // to one of them, guarded by the policy's subConns.mu

	// What each pick reads is not beside what each call writes.
	period   atomic.Pointer[period] // in which its calls begin
	unproven atomic.Bool            // its pickers say so
}

// counter counts the calls of an endpoint as they end. A50 has two buckets that are
// swapped, so that one is at rest while it is looked at; taking the numbers out is the
// same, and a call costs one addition.
type counter struct {
	successes, failures atomic.Uint64
	row                 atomic.Uint32 // failures since the last success
	since               atomic.Uint64 // the period that began with the first of them
	code                atomic.Uint32 // of the last failure, 0 where none is known
}

// swap returns what was counted since it was last called.
func (c *counter) swap() (successes, failures uint64) {
	return c.successes.Swap(0), c.failures.Swap(0)
}

func (c *counter) reset() {
	c.swap()
	c.row.Store(0)
}

// list returns the entries of endpoints, each once: those that there are, and new ones.
func (p *policy) list(endpoints []resolver.Endpoint) []*endpoint {
	known, list := make(map[key]*endpoint, len(endpoints)), make([]*endpoint, 0, len(endpoints))
	for _, given := range endpoints {
		var addresses []identity.Address
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
		e.Attached.name, e.Attached.addresses, e.Attached.reserve = name, given.Addresses, stateattr.IsReserve(given)
		known[key] = e
		list = append(list, e)
	}
	p.known = known
	return list
}
