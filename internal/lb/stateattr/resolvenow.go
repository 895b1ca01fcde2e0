package stateattr

import "google.golang.org/grpc/resolver"

type resolveNowKey struct{}

// resolveNowFunc is stored as a pointer, because functions can't be compared.
type resolveNowFunc struct {
	resolveNow func(child string, ignored bool)
}

// SetResolveNow sets a function that the priority policy calls instead of its ClientConn's
// ResolveNow. A resolver needs this if the children come from different sources. child is the name
// of the child that wants the re-resolution, and ignored is true if its configuration says to
// ignore such requests.
//
// resolveNow must be safe for concurrent use and must not block. After the resolver is closed,
// calls of it must do nothing.
func SetResolveNow(state resolver.State, resolveNow func(child string, ignored bool)) resolver.State {
	state.Attributes = state.Attributes.WithValue(resolveNowKey{}, &resolveNowFunc{resolveNow})
	return state
}

func ResolveNow(state resolver.State) func(child string, ignored bool) {
	r, ok := state.Attributes.Value(resolveNowKey{}).(*resolveNowFunc)
	if !ok || r == nil {
		return nil
	}
	return r.resolveNow
}

// TakeResolveNow returns what SetResolveNow has set, or nil. It also returns state without it,
// because the policies below have other children and should never call it.
func TakeResolveNow(state resolver.State) (func(child string, ignored bool), resolver.State) {
	resolveNow := ResolveNow(state)
	if resolveNow != nil {
		state.Attributes = state.Attributes.WithValue(resolveNowKey{}, (*resolveNowFunc)(nil))
	}
	return resolveNow, state
}
