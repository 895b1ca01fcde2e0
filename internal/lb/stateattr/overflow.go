package stateattr

import "google.golang.org/grpc/resolver"

type belowOverflowKey struct{}

// SetBelowOverflow returns state with an attribute for the policies below a priority policy with
// overflow. They must not refuse calls, not even those to endpoints that are all ejected: that
// policy has other priorities for them.
func SetBelowOverflow(state resolver.State) resolver.State {
	state.Attributes = state.Attributes.WithValue(belowOverflowKey{}, true)
	return state
}

func IsBelowOverflow(state resolver.State) bool {
	return state.Attributes.Value(belowOverflowKey{}) != nil
}
