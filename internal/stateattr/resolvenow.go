package stateattr

import "google.golang.org/grpc/resolver"

// reresolverKey is the attribute key of the re-resolution function.
type reresolverKey struct{}

// reresolver is stored as a pointer, because functions cannot be compared with ==.
type reresolver struct {
	resolveNow func(child string, ignored bool)
}

// SetResolveNow returns state with resolveNow in its attributes. A resolver sets it if the children
// of its priority policy come from different sources. The policy then calls resolveNow instead of
// its ClientConn's ResolveNow. child is the child that requests re-resolution. ignored reports
// whether the child's configuration ignores such requests, so that the request only shows that
// endpoints fail.
//
// resolveNow must not block and may be called from several goroutines. It may still be called after
// the resolver has been closed, and must do nothing then.
func SetResolveNow(state resolver.State, resolveNow func(child string, ignored bool)) resolver.State {
	state.Attributes = state.Attributes.WithValue(reresolverKey{}, &reresolver{resolveNow})
	return state
}

// ResolveNow returns the function that SetResolveNow set, or nil.
func ResolveNow(state resolver.State) func(child string, ignored bool) {
	r, ok := state.Attributes.Value(reresolverKey{}).(*reresolver)
	if !ok || r == nil {
		return nil
	}
	return r.resolveNow
}

// TakeResolveNow returns the function that SetResolveNow set, or nil, and state without it. A
// policy removes the function because it accepts the child names of only one level of the tree.
func TakeResolveNow(state resolver.State) (func(child string, ignored bool), resolver.State) {
	resolveNow := ResolveNow(state)
	if resolveNow != nil {
		state.Attributes = state.Attributes.WithValue(reresolverKey{}, (*reresolver)(nil))
	}
	return resolveNow, state
}
