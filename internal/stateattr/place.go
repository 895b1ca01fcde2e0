package stateattr

import "google.golang.org/grpc/resolver"

type placeKey struct{}

// Labels are the labels of a policy in metrics.
type Labels struct {
	Priority string // title, such as "p0 us-east/a, us-east/b"
	Locality string // name of the locality, or "" above the localities
	Service  string // cluster of the priority, or ""
}

// SetLabels returns state with the labels in its attributes. A policy calls it for the states of
// its children.
func SetLabels(state resolver.State, place Labels) resolver.State {
	state.Attributes = state.Attributes.WithValue(placeKey{}, place)
	return state
}

// LabelsOf returns the labels that SetLabels has set, or empty Labels. It works at any depth of the
// tree.
func LabelsOf(state resolver.State) Labels {
	place, _ := state.Attributes.Value(placeKey{}).(Labels)
	return place
}

// TakeLabels returns the labels that SetLabels has set, and state without them. Without the labels,
// a new title of a priority does not look like a change to the policies of its endpoints.
func TakeLabels(state resolver.State) (Labels, resolver.State) {
	place := LabelsOf(state)
	if place != (Labels{}) {
		state = SetLabels(state, Labels{})
	}
	return place, state
}
