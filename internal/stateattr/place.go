package stateattr

import "google.golang.org/grpc/resolver"

type placeKey struct{}

// Labels are the labels of a policy in metrics.
type Labels struct {
	Priority string // display title, such as "p0 us-east/a, us-east/b"
	Locality string // "" above the localities
	Service  string // the priority's cluster, or ""
}

// SetLabels returns state with place in its attributes. A policy calls it for its children.
func SetLabels(state resolver.State, place Labels) resolver.State {
	state.Attributes = state.Attributes.WithValue(placeKey{}, place)
	return state
}

// LabelsOf returns the labels that SetLabels set, at any depth of the tree, or empty Labels.
func LabelsOf(state resolver.State) Labels {
	place, _ := state.Attributes.Value(placeKey{}).(Labels)
	return place
}

// TakeLabels returns the labels that SetLabels set, and state without them, so that a new title of
// a priority does not update the policies of its endpoints.
func TakeLabels(state resolver.State) (Labels, resolver.State) {
	place := LabelsOf(state)
	if place != (Labels{}) {
		state = SetLabels(state, Labels{})
	}
	return place, state
}
