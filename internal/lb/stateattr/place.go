package stateattr

import "google.golang.org/grpc/resolver"

type labelsKey struct{}

// Labels are the metric labels of a policy.
type Labels struct {
	Priority string // title of the priority, such as "p0 us-east/a, us-east/b"
	Locality string // name of the locality, or "" for the policies above the localities
	Service  string // cluster of the priority, or ""
}

// SetLabels returns state with the labels in its attributes. A policy calls it on the states that
// it passes to its children.
func SetLabels(state resolver.State, labels Labels) resolver.State {
	state.Attributes = state.Attributes.WithValue(labelsKey{}, labels)
	return state
}

// LabelsOf returns the labels that SetLabels has set, or empty Labels.
func LabelsOf(state resolver.State) Labels {
	labels, _ := state.Attributes.Value(labelsKey{}).(Labels)
	return labels
}

// TakeLabels returns the labels that SetLabels has set, and state without them. The policies of
// endpoints get that state: they would take a new title of a priority for a change.
func TakeLabels(state resolver.State) (Labels, resolver.State) {
	labels := LabelsOf(state)
	if labels != (Labels{}) {
		state = SetLabels(state, Labels{})
	}
	return labels, state
}
