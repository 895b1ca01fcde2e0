package stateattr

import "google.golang.org/grpc/resolver"

type healthKey struct{}

// EnableHealthListener returns state with an attribute that makes pick_first use gRPC's generic
// health listener, for client-side health checks and outlier detection. pick_first then reports
// READY only while the server is healthy, and TRANSIENT_FAILURE otherwise. The connection stays
// open. The attribute takes effect for the next connection.
//
// A function of this name in pick_first of grpc-go has the same effect.
func EnableHealthListener(state resolver.State) resolver.State {
	state.Attributes = state.Attributes.WithValue(healthKey{}, true)
	return state
}

func HealthListener(state resolver.State) bool {
	return state.Attributes.Value(healthKey{}) != nil
}
