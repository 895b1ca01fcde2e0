package stateattr

import "google.golang.org/grpc/resolver"

// placeKey is the key of a Place in a resolver state's attributes.
type placeKey struct{}

// Labels says where in the tree a policy is, in the words of metrics.
type Labels struct {
	Priority string // what people call it, such as "p0 us-east/a, us-east/b"
	Locality string // "" above the localities
	Service  string // the cluster that the priority is of, "" where none is known
}

// SetLabels returns state with place in its attributes. A policy sets it for its children.
func SetLabels(state resolver.State, place Labels) resolver.State {
	state.Attributes = state.Attributes.WithValue(placeKey{}, place)
	return state
}

// LabelsOf returns the place that SetPlace put into state, at any depth of the tree, or no
// place.
func LabelsOf(state resolver.State) Labels {
	place, _ := state.Attributes.Value(placeKey{}).(Labels)
	return place
}

// TakeLabels returns the place that SetPlace put into state, and state without it: an
// endpoint's policy need not be updated because its priority has another name.
func TakeLabels(state resolver.State) (Labels, resolver.State) {
	place := LabelsOf(state)
	if place != (Labels{}) {
		state = SetLabels(state, Labels{})
	}
	return place, state
}
