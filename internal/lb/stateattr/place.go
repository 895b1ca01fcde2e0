package stateattr

import "google.golang.org/grpc/resolver"

type labelsKey struct{}

type Labels struct {
	Priority string // e.g. "p0 us-east/a, us-east/b"
	Locality string // "" for policies above the localities
	Service  string
}

func SetLabels(state resolver.State, labels Labels) resolver.State {
	state.Attributes = state.Attributes.WithValue(labelsKey{}, labels)
	return state
}

func LabelsOf(state resolver.State) Labels {
	labels, _ := state.Attributes.Value(labelsKey{}).(Labels)
	return labels
}

// TakeLabels returns what SetLabels has set, and state without it. A priority's new title would
// look like a change to the policies of endpoints, so we strip the labels for them.
func TakeLabels(state resolver.State) (Labels, resolver.State) {
	labels := LabelsOf(state)
	if labels != (Labels{}) {
		state = SetLabels(state, Labels{})
	}
	return labels, state
}
