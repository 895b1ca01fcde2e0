package stateattr

import "google.golang.org/grpc/resolver"

type belowOverflowKey struct{}

// SetBelowOverflow sets an attribute for the policies below a priority policy with overflow. Those
// policies must never refuse a call, even if all endpoints are ejected, because the call could go
// to another priority.
func SetBelowOverflow(state resolver.State) resolver.State {
	state.Attributes = state.Attributes.WithValue(belowOverflowKey{}, true)
	return state
}

func IsBelowOverflow(state resolver.State) bool {
	return state.Attributes.Value(belowOverflowKey{}) != nil
}
