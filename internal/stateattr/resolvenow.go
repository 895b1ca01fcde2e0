package stateattr

import "google.golang.org/grpc/resolver"

// reresolverKey is the key of the re-resolution function in a resolver state's
// attributes.
type reresolverKey struct{}

// reresolver is kept behind a pointer, because == cannot compare functions.
type reresolver struct {
	resolveNow func(child string, ignored bool)
}

// SetResolveNow returns state with resolveNow in its attributes. A resolver sets it if
// the children of its priority policy come from different sources. The policy then
// calls it, in place of its ClientConn's ResolveNow, with the name of the child that
// asked for re-resolution, and whether its configuration has such requests ignored. They then
// only say that endpoints fail.
//
// resolveNow must not block, may be called from several goroutines, and may still
// be called after the resolver was closed, when it must do nothing.
func SetResolveNow(state resolver.State, resolveNow func(child string, ignored bool)) resolver.State {
	state.Attributes = state.Attributes.WithValue(reresolverKey{}, &reresolver{resolveNow})
	return state
}

// ResolveNow returns the function that SetResolveNow put into state, or nil.
func ResolveNow(state resolver.State) func(child string, ignored bool) {
	r, ok := state.Attributes.Value(reresolverKey{}).(*reresolver)
	if !ok || r == nil {
		return nil
	}
	return r.resolveNow
}

// TakeResolveNow returns the function that SetResolveNow put into state, or nil, and
// state without it. A policy takes it out because the function knows the names of one
// level of the tree only.
func TakeResolveNow(state resolver.State) (func(child string, ignored bool), resolver.State) {
	resolveNow := ResolveNow(state)
	if resolveNow != nil {
		state.Attributes = state.Attributes.WithValue(reresolverKey{}, (*reresolver)(nil))
	}
	return resolveNow, state
}
