package stateattr

import "google.golang.org/grpc/resolver"

// placeKey is the key of a Place in a resolver state's attributes.
type placeKey struct{}

// Place says where in the tree a policy is, in the words of metrics.
type Place struct {
	Priority string // what people call it, such as "p0 us-east/a, us-east/b"
	Locality string // "" above the localities
	Service  string // the cluster that the priority is of, "" where none is known
}

// SetPlace returns state with place in its attributes. A policy sets it for its children.
func SetPlace(state resolver.State, place Place) resolver.State {
	state.Attributes = state.Attributes.WithValue(placeKey{}, place)
	return state
}

// PlaceOf returns the place that SetPlace put into state, at any depth of the tree, or no
// place.
func PlaceOf(state resolver.State) Place {
	place, _ := state.Attributes.Value(placeKey{}).(Place)
	return place
}

// TakePlace returns the place that SetPlace put into state, and state without it: an
// endpoint's policy need not be updated because its priority has another name.
func TakePlace(state resolver.State) (Place, resolver.State) {
	place := PlaceOf(state)
	if place != (Place{}) {
		state = SetPlace(state, Place{})
	}
	return place, state
}
