package stateattr

import "google.golang.org/grpc/resolver"

type reresolverKey struct{}

// We store a pointer to this, since functions cannot be compared.
type reresolver struct {
	resolveNow func(child string, ignored bool)
}

// SetResolveNow returns state with the function resolveNow in its attributes. The priority policy
// then calls resolveNow instead of its ClientConn's ResolveNow. A resolver sets it if the children
// come from different sources. child is the name of the child that requests the re-resolution;
// ignored is true if the child's configuration ignores such requests.
//
// resolveNow must be safe for concurrent use, and must not block. If it is called after the
// resolver has been closed, it must have no effect.
func SetResolveNow(state resolver.State, resolveNow func(child string, ignored bool)) resolver.State {
	state.Attributes = state.Attributes.WithValue(reresolverKey{}, &reresolver{resolveNow})
	return state
}

// ResolveNow returns the function that SetResolveNow has set, or nil.
func ResolveNow(state resolver.State) func(child string, ignored bool) {
	r, ok := state.Attributes.Value(reresolverKey{}).(*reresolver)
	if !ok || r == nil {
		return nil
	}
	return r.resolveNow
}

// TakeResolveNow returns the function that SetResolveNow has set, or nil, and state without it. The
// policies below must not call it: their children are not those of the priority policy.
func TakeResolveNow(state resolver.State) (func(child string, ignored bool), resolver.State) {
	resolveNow := ResolveNow(state)
	if resolveNow != nil {
		state.Attributes = state.Attributes.WithValue(reresolverKey{}, (*reresolver)(nil))
	}
	return resolveNow, state
}
