package stateattr

import "google.golang.org/grpc/resolver"

// healthKey is the key of EnableHealthListener's mark in a resolver state's attributes.
type healthKey struct{}

// EnableHealthListener returns state with the mark that makes pick_first listen to
// the health of the server to which it is connected, through gRPC's generic health
// listener: client-side health checks, outlier detection. READY then waits for the
// server to be healthy, and TRANSIENT_FAILURE is published while it is not; the
// connection stays. It counts from the next connection.
//
// A parent with many pick_first children calls it on what it passes to them. A state
// marked by gRPC-Go's own pickfirst.EnableHealthListener has the same effect.
func EnableHealthListener(state resolver.State) resolver.State {
	state.Attributes = state.Attributes.WithValue(healthKey{}, true)
	return state
}

// HealthListener reports whether EnableHealthListener marked state.
func HealthListener(state resolver.State) bool {
	return state.Attributes.Value(healthKey{}) != nil
}
