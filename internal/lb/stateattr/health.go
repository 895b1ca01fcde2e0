package stateattr

import "google.golang.org/grpc/resolver"

type healthKey struct{}

// EnableHealthListener sets an attribute that makes pick_first use gRPC's generic health listener.
// It's needed for client-side health checks and outlier detection. pick_first then reports READY
// only while the server is healthy, and TRANSIENT_FAILURE otherwise, with the connection left open.
// The attribute applies from the next connection on.
//
// grpc-go's pick_first has a function of the same name, with the same effect.
func EnableHealthListener(state resolver.State) resolver.State {
	state.Attributes = state.Attributes.WithValue(healthKey{}, true)
	return state
}

func HealthListener(state resolver.State) bool {
	return state.Attributes.Value(healthKey{}) != nil
}
