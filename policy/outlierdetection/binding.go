package outlierdetection

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

type subConns struct {
	rules             atomic.Pointer[rules] // nil if calls aren't counted
	hasHealthListener atomic.Bool
	uncountedSubConns atomic.Int64 // subchannels whose creator doesn't implement shell.CountedUser; if there are any, we must wrap picks

	mu        sync.Mutex
	unbound   map[*subConn]struct{}
	lists     uint32
	byAddress map[string]*endpoint
	stale     bool               // an endpoint's addresses have changed, e.g. because of another proxy, so we need a new index
	ambiguous map[string][]bound // addresses whose Addr isn't unique; they aren't in byAddress
	byText    map[text][]bound   // cache of the addresses in ambiguous by their text
	assigned  []*endpoint
}

// text stands in for an address, which can't be a map key.
type text struct{ addr, serverName, attributes string }

func textOf(a resolver.Address) text { return text{a.Addr, a.ServerName, a.Attributes.String()} }

type bound struct {
	address  resolver.Address
	endpoint *endpoint
}

func (p *policy) add(s *subConn) {
	p.uncountedSubConns.Add(1)
	p.mu.Lock()
	p.unbound[s] = struct{}{}
	p.bindLocked(s)
	p.mu.Unlock()
	if e := s.endpoint.Load(); e != nil {
		p.Event(func() {
			p.notifyEjection(s)
			p.connectedTo(e)
		})
	}
}

func (p *policy) remove(s *subConn) {
	p.mu.Lock()
	e := s.endpoint.Load()
	if e != nil {
		e.Attached.subConns = without(e.Attached.subConns, s)
	} else {
		delete(p.unbound, s)
	}
	p.mu.Unlock()
	if e != nil {
		p.Event(func() { p.connectedTo(e) })
	}
}

// bind assigns the subchannels to the endpoints of a new list, and returns the endpoints whose
// subchannels may have changed. It must run on the policy's serializer.
func (p *policy) bind(list []*endpoint) []*endpoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	touched, moved := p.assign(list, p.added, p.removed)
	for _, s := range moved {
		p.Event(func() { p.notifyEjection(s) })
	}
	return touched
}

// assign returns the endpoints whose subchannels may have changed, and the subchannels that now
// belong to another endpoint, or to none.
func (b *subConns) assign(list, added, removed []*endpoint) (touched []*endpoint, moved []*subConn) {
	if list == nil && b.byAddress == nil {
		return nil, nil
	}
	var some []*subConn
	isSmall := list != nil && b.reindex(added, removed)
	if !isSmall {
		b.lists++
		b.index(list)
	}
	if isSmall = isSmall && len(b.unbound) == 0; isSmall {
		some = subConnsOf(removed)
	} else {
		some = b.all()
	}
	b.assigned = list
	touched = slices.Clip(added)
	for _, s := range some {
		if b.bindLocked(s) {
			moved = append(moved, s)
			if e := s.endpoint.Load(); e != nil {
				touched = append(touched, e)
			}
		}
	}
	if !isSmall {
		touched = list
	}
	return touched, moved
}

func (b *subConns) all() []*subConn {
	return slices.AppendSeq(subConnsOf(b.assigned), maps.Keys(b.unbound))
}

func subConnsOf(list []*endpoint) (all []*subConn) {
	for _, e := range list {
		all = append(all, e.Attached.subConns...)
	}
	return all
}

// reindex updates byAddress for a list that differs by only a few endpoints. It returns false if
// index has to do it from scratch, i.e. if many endpoints differ, some share an address, or one has
// new addresses.
func (b *subConns) reindex(added, removed []*endpoint) bool {
	if b.stale || b.ambiguous != nil || 2*(len(added)+len(removed)) > len(b.byAddress) {
		return false
	}
	for _, e := range removed {
		e.Attached.list = 0
		for _, a := range e.Attached.addresses {
			delete(b.byAddress, a.Addr)
		}
	}
	for _, e := range added {
		e.Attached.list = b.lists
		for _, a := range e.Attached.addresses {
			if b.byAddress[a.Addr] != nil {
				return false
			}
			b.byAddress[a.Addr] = e
		}
	}
	return true
}

// index puts nearly all addresses into byAddress, which takes less memory than ambiguous.
func (b *subConns) index(list []*endpoint) {
	b.byAddress, b.stale, b.ambiguous, b.byText = nil, false, nil, nil
	if list == nil {
		return
	}
	b.byAddress = make(map[string]*endpoint, len(list))
	for _, e := range list {
		e.Attached.list = b.lists
		for _, a := range e.Attached.addresses {
			if b.byAddress[a.Addr] == nil {
				b.byAddress[a.Addr] = e
				continue
			}
			if b.ambiguous == nil {
				b.ambiguous = make(map[string][]bound)
			}
			b.ambiguous[a.Addr] = nil
		}
	}
	if b.ambiguous == nil {
		return
	}
	for _, e := range list {
		for _, a := range e.Attached.addresses {
			if others, ok := b.ambiguous[a.Addr]; ok {
				b.ambiguous[a.Addr] = append(others, bound{a, e})
				delete(b.byAddress, a.Addr)
			}
		}
	}
}

// rebind is called when the addresses of a subchannel have changed. It must run on the policy's
// serializer.
func (p *policy) rebind(s *subConn) {
	before := s.endpoint.Load()
	p.mu.Lock()
	p.bindLocked(s)
	p.mu.Unlock()
	p.notifyEjection(s)
	p.connectedTo(before)
	p.connectedTo(s.endpoint.Load())
}

// bindLocked returns true if the endpoint of s has changed. The caller holds mu.
func (b *subConns) bindLocked(s *subConn) bool {
	before, now := s.endpoint.Load(), b.endpointOf(s)
	if before == now {
		return false
	}
	if before != nil {
		before.Attached.subConns = without(before.Attached.subConns, s)
	}
	if now != nil {
		now.Attached.subConns = append(without(now.Attached.subConns, s), s)
	}
	if before == nil {
		delete(b.unbound, s)
	} else if now == nil {
		b.unbound[s] = struct{}{}
	}
	s.endpoint.Store(now)
	return true
}

// endpointOf returns the endpoint of s, or nil. If several endpoints match, it prefers the current
// one.
func (b *subConns) endpointOf(s *subConn) *endpoint {
	s.mu.Lock()
	only := s.address
	s.mu.Unlock()
	if only == nil {
		return nil
	}
	address := *only
	if e := b.byAddress[address.Addr]; e != nil {
		return e
	}
	candidates := b.ambiguous[address.Addr]
	if e := s.endpoint.Load(); e != nil && e.Attached.list == b.lists && slices.ContainsFunc(e.Attached.addresses, func(a resolver.Address) bool { return a.Addr == address.Addr && same(a, address) }) {
		return e
	}
	written := textOf(address)
	for _, c := range b.sameText(written) {
		if same(c.address, address) {
			return c.endpoint
		}
	}
	if !strings.Contains(written.attributes, "<0x") {
		return nil
	}
	for _, c := range candidates {
		if same(c.address, address) {
			return c.endpoint
		}
	}
	return nil
}

// sameText returns the endpoints with that text, out of those that share their Addr with others.
// Without this index, bind would take quadratic time behind a proxy, where all endpoints have the
// same Addr.
func (b *subConns) sameText(written text) []bound {
	if b.byText == nil {
		b.byText = make(map[text][]bound)
		for _, candidates := range b.ambiguous {
			for _, c := range candidates {
				of := textOf(c.address)
				b.byText[of] = append(b.byText[of], c)
			}
		}
	}
	return b.byText[written]
}

// same compares two addresses with the same Addr. If Attributes.Equal panics, they count as
// different.
func same(a, b resolver.Address) bool {
	return a.ServerName == b.ServerName && stateattr.Same(func() bool { return a.Attributes.Equal(b.Attributes) })
}

func (b *subConns) subConnsOf(e *endpoint) []*subConn {
	b.mu.Lock()
	defer b.mu.Unlock()
	return e.Attached.subConns
}

// notifyEjection tells the child whether the endpoint of s is ejected. It must run on the policy's
// serializer.
func (p *policy) notifyEjection(s *subConn) {
	e := s.endpoint.Load()
	s.setEjected(e != nil && e.VisiblyEjected())
}

// connection returns the state of the endpoint's best connection. If there are several addresses,
// the child may try them one by one, so the endpoint isn't Broken until all of its connections are.
// If there's no connection yet, we say Connecting since the child is about to connect.
func (p *policy) connection(e *endpoint) core.Connection {
	var n [core.Broken + 1]int
	for _, s := range p.subConnsOf(e) {
		n[s.theConnection()]++
	}
	switch {
	case n[core.Connected] > 0:
		return core.Connected
	case n[core.Broken] > 0 && n[core.Connecting] == 0 && n[core.Broken] >= len(e.Attached.addresses):
		return core.Broken
	}
	return core.Connecting
}

// connectedTo must run on the policy's serializer.
func (p *policy) connectedTo(e *endpoint) {
	if e != nil {
		p.core.Connection(e, p.connection(e))
		p.applyOutcome()
	}
}

// setRules changes how we count calls. With nil, we don't count any. If we start or stop counting,
// all subchannels get new pickers.
func (p *policy) setRules(now *rules) {
	before := p.rules.Swap(now)
	if (before == nil) == (now == nil) {
		return
	}
	p.mu.Lock()
	users := p.all()
	p.mu.Unlock()
	for _, s := range users {
		s.pickerChanged()
	}
}
