package stateattr

import "google.golang.org/grpc/resolver"

type placeKey struct{}

// Labels are the metric labels of a policy.
type Labels struct {
	Priority string // title of the priority, such as "p0 us-east/a, us-east/b"
	Locality string // name of the locality, or "" above the localities
	Service  string // cluster of the priority, or ""
}

// SetLabels returns state with the labels in its attributes. A policy calls it on the states that
// it passes to its children.
func SetLabels(state resolver.State, place Labels) resolver.State {
	state.Attributes = state.Attributes.WithValue(placeKey{}, place)
	return state
}

// LabelsOf returns the labels set by SetLabels, or empty Labels. All policies below the one that
// called SetLabels can use them.
func LabelsOf(state resolver.State) Labels {
	place, _ := state.Attributes.Value(placeKey{}).(Labels)
	return place
}

// TakeLabels returns the labels set by SetLabels, and state without them. To the policies of
// endpoints, labels in the state would make a new title of a priority look like a change.
func TakeLabels(state resolver.State) (Labels, resolver.State) {
	place := LabelsOf(state)
	if place != (Labels{}) {
		state = SetLabels(state, Labels{})
	}
	return place, state
}
