package leaf

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/shell"
)

// endpoints is a list of endpoints, empty by default. It needs the lock because the child can
// create subchannels at any time, and gRPC can report their states.
type endpoints struct {
	picks atomic.Uint64
	taken uint64

	mu        sync.Mutex
	list      []*endpoint
	byAddress map[string]*endpoint
}

type endpoint struct {
	all    *endpoints
	record *shell.Record

	// guarded by endpoints.mu
	addresses []resolver.Address
	weight    uint32
	conns     []*subConn
	state     connectivity.State
	since     time.Time
	err       error
	failedAt  time.Time
}

// update keeps an endpoint if its first address was there before.
func (e *endpoints) update(list []resolver.Endpoint) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.byAddress
	e.list, e.byAddress = nil, make(map[string]*endpoint, len(list))
	for _, given := range list {
		if len(given.Addresses) == 0 || e.byAddress[given.Addresses[0].Addr] != nil {
			continue
		}
		known := before[given.Addresses[0].Addr]
		if known == nil {
			known = &endpoint{all: e, record: shell.NewRecord(), state: connectivity.Idle, since: time.Now()}
		}
		known.addresses, known.weight = given.Addresses, max(1, weight.FromEndpoint(given).Weight)
		e.list = append(e.list, known)
		for _, a := range given.Addresses {
			e.byAddress[a.Addr] = known
		}
	}
}

// of returns the endpoint with this address. If the address is unknown, that's an endpoint that
// isn't in any list.
func (e *endpoints) of(a resolver.Address) *endpoint {
	e.mu.Lock()
	defer e.mu.Unlock()
	if known := e.byAddress[a.Addr]; known != nil {
		return known
	}
	return &endpoint{all: e, record: shell.NewRecord(), addresses: []resolver.Address{a}, weight: 1}
}

func (p *endpoint) add(s *subConn) {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	p.conns = append(p.conns, s)
}

func (p *endpoint) remove(s *subConn) {
	p.all.mu.Lock()
	p.conns = slices.DeleteFunc(p.conns, func(other *subConn) bool { return other == s })
	changed := p.refresh()
	p.all.mu.Unlock()
	if changed {
		s.policy.Event(func() {}) // an empty event is enough: Settled and the snapshot follow each batch
	}
}

func (e *endpoints) record(s *subConn, change func()) {
	e.mu.Lock()
	change()
	changed := s.endpoint.refresh()
	e.mu.Unlock()
	if changed {
		s.policy.Event(func() {})
	}
}

// refresh must be called with mu held.
func (p *endpoint) refresh() (changed bool) {
	state, err := stateOf(p.conns)
	if err != nil {
		p.err, p.failedAt = err, time.Now()
	}
	if changed = state != p.state || err != nil; state != p.state {
		p.state, p.since = state, time.Now()
	}
	return changed
}

func (e *endpoints) failure() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.list {
		if p.state != connectivity.TransientFailure || p.err == nil {
			continue
		}
		if len(e.list) > 1 {
			return &shell.AllFailed{Endpoints: len(e.list), Example: shell.Plain(p.err)}
		}
		return shell.Plain(p.err)
	}
	return nil
}

func (e *endpoints) count() (counts Counts) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.list {
		counts[SeriesOf(p.state, p.err)]++
	}
	return counts
}

func (e *endpoints) takePicks() uint64 {
	picks := e.picks.Load()
	taken := picks - e.taken
	e.taken = picks
	return taken
}

func (e *endpoints) snapshots() (all []shell.ChildSnapshot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.list {
		all = append(all, shell.ChildSnapshot{
			Name: p.addresses[0].Addr, State: p.state, Since: p.since, LastError: p.err, FailedAt: p.failedAt,
			Details: shell.Endpoint{Addresses: p.addresses, Weight: p.weight, Record: p.record},
		})
	}
	return all
}
