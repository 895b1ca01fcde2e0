package lbtest

import (
	"fmt"
	"sync"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
)

// SubConn is a balancer.SubConn that records calls. It doesn't report anything until a test calls
// Report or ReportHealth. Its methods may be called concurrently.
type SubConn struct {
	balancer.SubConn // nil; here in case grpc-go adds methods to the interface

	Addresses []resolver.Address

	listener func(balancer.SubConnState)

	mu       sync.Mutex
	connects int
	updated  []resolver.Address
	shutdown bool
	health   func(balancer.SubConnState)
}

func (sc *SubConn) String() string { return fmt.Sprintf("SubConn(%s)", sc.Addresses[0].Addr) }

func (sc *SubConn) Connect() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.connects++
}

func (sc *SubConn) Connects() int {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.connects
}

func (sc *SubConn) Shutdown() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.shutdown = true
}

func (sc *SubConn) IsShutdown() bool {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.shutdown
}

func (sc *SubConn) UpdateAddresses(addresses []resolver.Address) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.updated = addresses
}

func (sc *SubConn) UpdatedAddresses() []resolver.Address {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.updated
}

func (sc *SubConn) RegisterHealthListener(f func(balancer.SubConnState)) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.health = f
}

// Report passes a connectivity state to the state listener. Like grpc-go, it removes the health
// listener first. err is the connection error for TRANSIENT_FAILURE.
func (sc *SubConn) Report(state connectivity.State, err error) {
	sc.mu.Lock()
	sc.health = nil
	sc.mu.Unlock()
	if sc.listener != nil {
		sc.listener(balancer.SubConnState{ConnectivityState: state, ConnectionError: err})
	}
}

func (sc *SubConn) HasHealthListener() bool {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.health != nil
}

func (sc *SubConn) ReportHealth(state connectivity.State, err error) {
	sc.mu.Lock()
	f := sc.health
	sc.mu.Unlock()
	if f != nil {
		f(balancer.SubConnState{ConnectivityState: state, ConnectionError: err})
	}
}
