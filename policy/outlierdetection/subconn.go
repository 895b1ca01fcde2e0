package outlierdetection

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/lb/shell"
)

type clientConn struct {
	balancer.ClientConn
	policy *policy
}

func (c *clientConn) NewSubConn(addresses []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	s := &subConn{policy: c.policy, address: only(addresses), changed: opts.StateListener}
	opts.StateListener = s.stateChanged
	conn, err := c.ClientConn.NewSubConn(addresses, opts)
	if err != nil {
		return nil, err
	}
	s.SubConn = conn
	if above, ok := conn.(shell.Ender); ok {
		above.EndWith(s.done)
		s.endsAbove = true
	}
	c.policy.add(s)
	return s, nil
}

// RemoveSubConn is deprecated, but some policies still call it.
func (c *clientConn) RemoveSubConn(sc balancer.SubConn) { sc.Shutdown() }

// UpdateAddresses is deprecated, but some policies still call it.
func (c *clientConn) UpdateAddresses(sc balancer.SubConn, addresses []resolver.Address) {
	if s, ok := sc.(*subConn); ok {
		s.UpdateAddresses(addresses)
	}
}

// subConn is A50's subchannel wrapper. It passes connectivity and health on to the child. While its
// endpoint is ejected, though, it reports TRANSIENT_FAILURE as the health.
type subConn struct {
	balancer.SubConn
	policy   *policy
	changed  func(balancer.SubConnState)
	endpoint atomic.Pointer[endpoint]

	mu         sync.Mutex
	run        uint32 // identifies a connection, as each connectivity change increments it
	state      uint8  // a connectivity.State
	healthy    uint8  // a connectivity.State for this connection; IDLE before the first report
	isShutdown bool
	ejected    bool              // guarded by delivery; placed here because it needs no extra memory
	address    *resolver.Address // nil if there are several, in which case the subchannel belongs to no endpoint (A50)
	listener   func(balancer.SubConnState)
	user       shell.CountedUser

	// delivery is held while we call a listener of the child, so that the child gets states in
	// order. In particular, it never gets an ejection from an earlier connection after a new
	// connectivity state. To avoid a deadlock, methods that a listener may call don't acquire it.
	// It also guards the fields below.
	delivery  sync.Mutex
	health    balancer.SubConnState
	hasHealth bool // health belongs to the current connection
	notified  bool

	endsAbove bool // the parent's subchannel implements shell.Ender
}

var ejected = balancer.SubConnState{
	ConnectivityState: connectivity.TransientFailure,
	ConnectionError:   fmt.Errorf("outlier_detection: %w", shell.ErrEjected),
}

// UpdateAddresses implements "Update Addresses" in A50.
func (s *subConn) UpdateAddresses(addresses []resolver.Address) {
	s.mu.Lock()
	s.address = only(addresses)
	s.mu.Unlock()
	s.SubConn.UpdateAddresses(addresses)
	s.policy.Event(func() { s.policy.rebind(s) })
}

func (s *subConn) Shutdown() {
	s.mu.Lock()
	stranger := s.user == nil && !s.isShutdown
	s.isShutdown, s.listener = true, nil
	s.run++
	s.mu.Unlock()
	if stranger {
		s.policy.uncountedSubConns.Add(-1)
	}
	s.policy.remove(s)
	s.SubConn.Shutdown()
}

// stateChanged passes a connectivity state to the child. It first drops the health listener, since
// gRPC uses one only until the subchannel leaves READY.
func (s *subConn) stateChanged(state balancer.SubConnState) {
	s.delivery.Lock()
	defer s.delivery.Unlock()
	s.mu.Lock()
	before := s.connection()
	s.state, s.listener, s.healthy = uint8(state.ConnectivityState), nil, uint8(connectivity.Idle)
	s.run++
	changed := s.connection() != before
	s.mu.Unlock()
	s.hasHealth, s.notified = false, false
	s.noteConnection(changed)
	if s.changed != nil {
		s.changed(state)
	}
}

// RegisterHealthListener registers the child's listener, which gets changes of the server's health
// as well as ejections (A61).
func (s *subConn) RegisterHealthListener(listener func(balancer.SubConnState)) {
	if listener != nil {
		s.policy.hasHealthListener.Store(true)
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

func (s *subConn) current() (listener func(balancer.SubConnState), run uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listener, s.run
}

func (s *subConn) healthChanged(of uint32, state balancer.SubConnState) {
	s.delivery.Lock()
	defer s.delivery.Unlock()
	listener, run := s.current()
	if listener == nil || run != of {
		return
	}
	// If this endpoint turns healthy, other ejections may become visible. We must tell the child
	// about the healthy endpoint before that. If it turns unhealthy, we do it the other way round.
	// Otherwise the child would see a moment at which no endpoint can take calls.
	changed := s.setHealthy(state.ConnectivityState)
	if state.ConnectivityState == connectivity.Ready {
		defer s.noteConnection(changed)
	} else {
		s.noteConnection(changed)
	}
	s.health, s.hasHealth = state, true
	if !s.ejected {
		listener(state)
	} else if !s.notified {
		s.notified = true
		listener(ejected)
	}
}

// setEjected tells the child that an ejection has begun or ended. When it ends, the child gets the
// last known health. It must run on the policy's serializer.
func (s *subConn) setEjected(now bool) {
	s.delivery.Lock()
	defer s.delivery.Unlock()
	if s.ejected == now {
		return
	}
	s.ejected = now
	listener, _ := s.current()
	if listener == nil || !s.hasHealth {
		return
	}
	if s.notified = now; now {
		listener(ejected)
	} else {
		listener(s.health)
	}
}

// setHealthy returns true if that changes the result of connection.
func (s *subConn) setHealthy(healthy connectivity.State) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.connection()
	s.healthy = uint8(healthy)
	return s.connection() != before
}

func (s *subConn) noteConnection(changed bool) {
	if changed && s.policy.rules.Load() != nil {
		s.policy.Event(func() { s.policy.connectedTo(s.endpoint.Load()) })
	}
}

// connection returns Connected if the child could use the subchannel right now, were it not
// ejected. It has to be READY and, if the child listens to health updates, healthy. The caller
// holds mu.
func (s *subConn) connection() core.Connection {
	state, healthy := connectivity.State(s.state), connectivity.State(s.healthy)
	switch {
	case state == connectivity.Ready && (healthy == connectivity.Ready || !s.policy.hasHealthListener.Load()):
		return core.Connected
	case state == connectivity.TransientFailure, state == connectivity.Ready && healthy == connectivity.TransientFailure:
		return core.Broken
	}
	return core.Connecting
}

func (s *subConn) theConnection() core.Connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connection()
}

func only(addresses []resolver.Address) *resolver.Address {
	if len(addresses) != 1 {
		return nil
	}
	return &addresses[0]
}

func without(list []*subConn, s *subConn) []*subConn {
	return slices.DeleteFunc(slices.Clone(list), func(other *subConn) bool { return other == s })
}
