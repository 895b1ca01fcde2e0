package outlierdetection

import (
	"sync/atomic"

	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	identity "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/hierarchy"
	"github.com/understudy-lb/understudy/internal/stateattr"
)

// endpoint is an entry of A50's map, one per endpoint as in A61.
type endpoint = core.Endpoint[counted]

type key = identity.Key

// counted is the data that the shell attaches to an endpoint.
type counted struct {
	counter
	name      string             // the first address
	addresses []resolver.Address // the addresses that the child connects to
	reserve   bool               // a reserve endpoint, to which the child may not connect
	list      uint64             // subConns.lists when the endpoint was last bound; guarded by subConns.mu
	subConns  []*subConn         // the subchannels to these addresses; guarded by subConns.mu

	// Each pick reads these fields. They do not share a cache line with the counters, which
	// each call writes.
	period   atomic.Pointer[period] // the period in which new calls begin
	unproven atomic.Bool            // what the endpoint's pickers report
}

// counter counts the calls of an endpoint as they end. Reading and clearing it replaces A50's
// swap of two buckets, so that a call costs a single addition.
type counter struct {
	successes, failures atomic.Uint64
	row                 atomic.Uint32 // consecutive failures
	since               atomic.Uint64 // the number of the period that began with the first of these failures
	code                atomic.Uint32 // the status code of the last failure; 0 if there was none
}

func (c *counter) swap() (successes, failures uint64) {
	return c.successes.Swap(0), c.failures.Swap(0)
}

func (c *counter) reset() {
	c.swap()
	c.row.Store(0)
}

// list returns the entries of endpoints, without duplicates. Known endpoints keep their
// entries.
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
