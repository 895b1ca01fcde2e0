package lbtest

import (
	"fmt"
	"sync"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
)

// SubConn is a balancer.SubConn that records calls and reports states on command. All methods are
// safe for concurrent use.
type SubConn struct {
	balancer.SubConn // nil: supplies methods that grpc-go may add

	// Addresses are the addresses that the subchannel was created with.
	Addresses []resolver.Address

	listener func(balancer.SubConnState)

	mu       sync.Mutex
	connects int
	updated  []resolver.Address
	shutdown bool
	health   func(balancer.SubConnState)
}

// String returns the first address.
func (sc *SubConn) String() string { return fmt.Sprintf("SubConn(%s)", sc.Addresses[0].Addr) }

// Connect counts the call.
func (sc *SubConn) Connect() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.connects++
}

// Connects returns how many times Connect was called.
func (sc *SubConn) Connects() int {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.connects
}

// Shutdown records the call.
func (sc *SubConn) Shutdown() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.shutdown = true
}

// IsShutdown returns whether Shutdown was called.
func (sc *SubConn) IsShutdown() bool {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.shutdown
}

// UpdateAddresses records the addresses. Current policies do not use this method.
func (sc *SubConn) UpdateAddresses(addresses []resolver.Address) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.updated = addresses
}

// Updated returns the addresses from the last call of UpdateAddresses.
func (sc *SubConn) Updated() []resolver.Address {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.updated
}

// RegisterHealthListener records the listener.
func (sc *SubConn) RegisterHealthListener(f func(balancer.SubConnState)) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.health = f
}

// Report reports a connection state to the policy, on the caller's stack. Like grpc-go's channel,
// it first drops the health listener. err is the error for TRANSIENT_FAILURE.
func (sc *SubConn) Report(state connectivity.State, err error) {
	sc.mu.Lock()
	sc.health = nil
	sc.mu.Unlock()
	if sc.listener != nil {
		sc.listener(balancer.SubConnState{ConnectivityState: state, ConnectionError: err})
	}
}

// HasHealthListener returns whether a health listener is registered.
func (sc *SubConn) HasHealthListener() bool {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.health != nil
}

// ReportHealth reports the server's health state, if a health listener is registered.
func (sc *SubConn) ReportHealth(state connectivity.State, err error) {
	sc.mu.Lock()
	f := sc.health
	sc.mu.Unlock()
	if f != nil {
		f(balancer.SubConnState{ConnectivityState: state, ConnectionError: err})
	}
}
