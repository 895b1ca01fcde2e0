package outlierdetection

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/shell"
)

// clientConn is what the child sees of the channel: its subchannels are ours.
type clientConn struct {
	balancer.ClientConn
	policy *policy
}

// NewSubConn makes a subchannel, and binds it to the entry of its endpoint.
func (c *clientConn) NewSubConn(addresses []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	s := &subConn{policy: c.policy, addresses: addresses, changed: opts.StateListener}
	opts.StateListener = s.stateChanged
	conn, err := c.ClientConn.NewSubConn(addresses, opts)
	if err != nil {
		return nil, err
	}
	s.SubConn = conn
	c.policy.add(s)
	return s, nil
}

// RemoveSubConn shuts a subchannel down; gRPC-Go keeps it for old policies.
func (c *clientConn) RemoveSubConn(sc balancer.SubConn) { sc.Shutdown() }

// UpdateAddresses gives a subchannel other addresses (A50, "Update Addresses"); gRPC-Go
// keeps it for old policies.
func (c *clientConn) UpdateAddresses(sc balancer.SubConn, addresses []resolver.Address) {
	if s, ok := sc.(*subConn); ok {
		s.UpdateAddresses(addresses)
	}
}

// subConn is A50's subchannel wrapper.
type subConn struct {
	balancer.SubConn // of the parent
	policy           *policy
	changed          func(balancer.SubConnState)
	endpoint         atomic.Pointer[endpoint] // nil for none

	mu        sync.Mutex
	addresses []resolver.Address
	state     connectivity.State
	run       int                         // how often the state has changed
	healthy   connectivity.State          // in this run, IDLE before it is known
	listener  func(balancer.SubConnState) // of health, in this run
	user      shell.CountedUser
	shut      bool

	// delivery is held while the child hears something of the subchannel, as gRPC calls
	// its listeners one after the other: the child must not hear of an ejection from
	// before a change of state after it. Nothing that a child may do from inside that
	// waits for it. It guards what follows.
	delivery  sync.Mutex
	health    balancer.SubConnState // as last reported, in healthRun
	healthRun int                   // 0 before the first
	ejected   bool
	toldRun   int // in which the child was told that it is ejected
}

// ejected is what the child hears of a subchannel to an ejected endpoint.
var ejected = balancer.SubConnState{
	ConnectivityState: connectivity.TransientFailure,
	ConnectionError:   errors.New("outlier_detection: the endpoint is ejected, because calls to it failed"),
}

// UpdateAddresses passes new addresses on, and looks for their endpoint.
func (s *subConn) UpdateAddresses(addresses []resolver.Address) {
	s.mu.Lock()
	s.addresses = addresses
	s.mu.Unlock()
	s.SubConn.UpdateAddresses(addresses)
	s.policy.Event(func() { s.policy.rebind(s) })
}

// Shutdown ends the subchannel; the child hears no more of it.
func (s *subConn) Shutdown() {
	s.mu.Lock()
	stranger := s.user == nil && !s.shut
	s.shut, s.listener = true, nil
	s.run++
	s.mu.Unlock()
	if stranger {
		s.policy.strangers.Add(-1)
	}
	s.policy.remove(s)
	s.SubConn.Shutdown()
}

// stateChanged hears of the connection. A health listener holds for one READY.
func (s *subConn) stateChanged(state balancer.SubConnState) {
	s.delivery.Lock()
	defer s.delivery.Unlock()
	s.mu.Lock()
	before := s.connection()
	s.state, s.listener, s.healthy = state.ConnectivityState, nil, connectivity.Idle
	s.run++
	changed := s.connection() != before
	s.mu.Unlock()
	s.noteConnection(changed)
	if s.changed != nil {
		s.changed(state)
	}
}

// RegisterHealthListener has the child hear of the endpoint's health, and of ejections
// as if they were the endpoint's (A61).
func (s *subConn) RegisterHealthListener(listener func(balancer.SubConnState)) {
	if listener != nil {
		s.policy.listens.Store(true)
	}
	s.mu.Lock()
	s.listener = listener
	run := s.run
	s.mu.Unlock()
	if listener == nil {
		s.SubConn.RegisterHealthListener(nil)
		return
	}
	s.SubConn.RegisterHealthListener(func(state balancer.SubConnState) { s.healthChanged(run, state) })
}

// current returns the health listener and its run.
func (s *subConn) current() (listener func(balancer.SubConnState), run int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listener, s.run
}

func (s *subConn) healthChanged(of int, state balancer.SubConnState) {
	s.delivery.Lock()
	defer s.delivery.Unlock()
	listener, run := s.current()
	if listener == nil || run != of {
		return
	}
	s.noteConnection(s.setHealthy(state.ConnectivityState))
	s.health, s.healthRun = state, run
	if !s.ejected {
		listener(state)
	} else if s.toldRun != run {
		s.toldRun = run
		listener(ejected)
	}
}

// setEjected has the child see the subchannel as ejected, or as it is, in an event.
func (s *subConn) setEjected(now bool) {
	s.delivery.Lock()
	defer s.delivery.Unlock()
	if s.ejected == now {
		return
	}
	s.ejected = now
	listener, run := s.current()
	if listener == nil || s.healthRun != run {
		return // healthChanged tells
	}
	if now {
		s.toldRun = run
		listener(ejected)
	} else {
		s.toldRun = 0
		listener(s.health)
	}
}

// setHealthy returns whether the connection is now another.
func (s *subConn) setHealthy(healthy connectivity.State) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.connection()
	s.healthy = healthy
	return s.connection() != before
}

// noteConnection has the core hear of a change.
func (s *subConn) noteConnection(changed bool) {
	if changed && s.policy.rules.Load() != nil {
		s.policy.Event(func() { s.policy.connectedTo(s.endpoint.Load()) })
	}
}

// connection is what the subchannel is for its endpoint. It is connected if the child would
// use it where the endpoint is not ejected: where the child listens to that, it is healthy,
// too. The lock is held.
func (s *subConn) connection() core.Connection {
	switch {
	case s.shut:
		return core.Absent
	case s.state == connectivity.Ready && (s.healthy == connectivity.Ready || !s.policy.listens.Load()):
		return core.Connected
	case s.state == connectivity.TransientFailure, s.state == connectivity.Ready && s.healthy == connectivity.TransientFailure:
		return core.Broken
	}
	return core.Connecting
}

func (s *subConn) theConnection() core.Connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connection()
}

// address returns the address that the subchannel is for. One with several is nobody's.
func (s *subConn) address() (address resolver.Address, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.addresses) != 1 {
		return resolver.Address{}, false
	}
	return s.addresses[0], true
}

// without returns list without s. The list is not modified.
func without(list []*subConn, s *subConn) []*subConn {
	return slices.DeleteFunc(slices.Clone(list), func(other *subConn) bool { return other == s })
}
