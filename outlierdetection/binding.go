package outlierdetection

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
)

// subConns are the subchannels of the child, and the endpoints that they are bound to.
type subConns struct {
	rules     atomic.Pointer[rules] // nil while nothing is counted
	listens   atomic.Bool           // some subchannel's health has been listened to
	strangers atomic.Int64          // how many are of policies that do not know shell.Counted

	mu        sync.Mutex
	all       map[*subConn]struct{}
	lists     uint64             // how many there were
	byAddress map[string][]bound // nil while nothing is counted
	byText    map[text][]bound   // of those that share their address with others; nil before it is used
}

// text is an address in full, as far as that can be compared.
type text struct{ addr, serverName, attributes string }

func textOf(a resolver.Address) text { return text{a.Addr, a.ServerName, a.Attributes.String()} }

// bound is the endpoint of an address. Behind a proxy, addresses with one Addr differ in
// their attributes.
type bound struct {
	address  resolver.Address
	endpoint *endpoint
}

// add takes in a new subchannel.
func (p *policy) add(s *subConn) {
	p.strangers.Add(1)
	p.mu.Lock()
	p.all[s] = struct{}{}
	p.bindLocked(s)
	p.mu.Unlock()
	if e := s.endpoint.Load(); e != nil {
		p.Event(func() {
			p.tell(s)
			p.connectedTo(e)
		})
	}
}

// remove forgets a subchannel.
func (p *policy) remove(s *subConn) {
	p.mu.Lock()
	delete(p.all, s)
	e := s.endpoint.Load()
	if e != nil {
		e.Attached.subConns = without(e.Attached.subConns, s)
	}
	p.mu.Unlock()
	if e != nil {
		p.Event(func() { p.connectedTo(e) })
	}
}

// bind binds all subchannels to the endpoints of a new list, in an event.
func (p *policy) bind(list []*endpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if list == nil && p.byAddress == nil {
		return
	}
	p.lists++
	p.byAddress, p.byText = nil, nil
	if list != nil {
		p.byAddress = make(map[string][]bound, len(list))
	}
	for _, e := range list {
		e.Attached.list = p.lists
		for _, a := range e.Attached.addresses {
			p.byAddress[a.Addr] = append(p.byAddress[a.Addr], bound{a, e})
		}
	}
	for s := range p.all {
		if p.bindLocked(s) {
			p.Event(func() { p.tell(s) })
		}
	}
}

// rebind binds a subchannel that has got another address, in an event.
func (p *policy) rebind(s *subConn) {
	before := s.endpoint.Load()
	p.mu.Lock()
	p.bindLocked(s)
	p.mu.Unlock()
	p.tell(s)
	p.connectedTo(before)
	p.connectedTo(s.endpoint.Load())
}

// bindLocked returns whether the subchannel is another endpoint's now.
func (b *subConns) bindLocked(s *subConn) bool {
	before, now := s.endpoint.Load(), b.find(s)
	if before == now {
		return false
	}
	if before != nil {
		before.Attached.subConns = without(before.Attached.subConns, s)
	}
	if now != nil {
		now.Attached.subConns = append(without(now.Attached.subConns, s), s)
	}
	s.endpoint.Store(now)
	return true
}

// find returns the endpoint of a subchannel, nil for none. Of several it is the one that it
// had, or the first.
func (b *subConns) find(s *subConn) *endpoint {
	address, ok := s.address()
	if !ok {
		return nil
	}
	candidates := b.byAddress[address.Addr]
	if len(candidates) == 1 {
		return candidates[0].endpoint
	}
	if e := s.endpoint.Load(); e != nil && e.Attached.list == b.lists && slices.ContainsFunc(e.Attached.addresses, func(a resolver.Address) bool { return a.Addr == address.Addr && same(a, address) }) {
		return e
	}
	written := textOf(address)
	for _, c := range b.alike(written) {
		if same(c.address, address) {
			return c.endpoint
		}
	}
	if !strings.Contains(written.attributes, "<0x") {
		return nil
	}
	for _, c := range candidates { // a pointer may have another text, and be equal
		if same(c.address, address) {
			return c.endpoint
		}
	}
	return nil
}

// alike returns those that share their address with others, and have a text. All of them
// are written down once: looking at each for each subchannel would be quadratic behind a proxy.
func (b *subConns) alike(written text) []bound {
	if b.byText == nil {
		b.byText = make(map[text][]bound)
		for _, candidates := range b.byAddress {
			for _, c := range candidates {
				if len(candidates) > 1 {
					of := textOf(c.address)
					b.byText[of] = append(b.byText[of], c)
				}
			}
		}
	}
	return b.byText[written]
}

// same returns whether a subchannel to a is one to b. Attributes that cannot be compared
// make Equal panic.
func same(a, b resolver.Address) (same bool) {
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	return a.ServerName == b.ServerName && a.Attributes.Equal(b.Attributes)
}

// of returns the subchannels that are bound to an endpoint.
func (b *subConns) of(e *endpoint) []*subConn {
	b.mu.Lock()
	defer b.mu.Unlock()
	return e.Attached.subConns
}

// tell has the child see a subchannel as what its endpoint is, in an event.
func (p *policy) tell(s *subConn) {
	e := s.endpoint.Load()
	s.setEjected(e != nil && e.Told())
}

// connection returns what the connection of an endpoint is: the best of its subchannels'. It
// is broken where that of each of its addresses is, since a child may try one after the other.
func (p *policy) connection(e *endpoint) core.Connection {
	var n [core.Absent + 1]int
	for _, s := range p.of(e) {
		n[s.theConnection()]++
	}
	switch {
	case n[core.Connected] > 0:
		return core.Connected
	case n[core.Connecting] > 0 || n[core.Broken] > 0 && n[core.Broken] < len(e.Attached.addresses):
		return core.Connecting
	case n[core.Broken] > 0:
		return core.Broken
	}
	return core.Absent
}

// connectedTo has the core hear what the connection of an endpoint is, in an event.
func (p *policy) connectedTo(e *endpoint) {
	if e != nil {
		p.core.Connection(e, p.connection(e))
		p.settle()
	}
}

// setRules says what is counted from now on; nil is nothing. Policies whose pickers then
// return something else are told, and make new ones.
func (p *policy) setRules(now *rules) {
	before := p.rules.Swap(now)
	if (before == nil) == (now == nil) {
		return
	}
	p.mu.Lock()
	var users []*subConn
	for s := range p.all {
		users = append(users, s)
	}
	p.mu.Unlock()
	for _, s := range users {
		s.pickerChanged()
	}
}
