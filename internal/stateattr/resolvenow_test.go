package stateattr

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc/resolver"
)

func TestTakeResolveNow(t *testing.T) {
	var asked []string
	state := SetResolveNow(resolver.State{}, func(child string, ignored bool) { asked = append(asked, fmt.Sprint(child, ignored)) })
	resolveNow, rest := TakeResolveNow(state)
	resolveNow("p1", true)
	if !slices.Equal(asked, []string{"p1true"}) {
		t.Errorf("resolveNow was called with %q, want p1true", asked)
	}
	if ResolveNow(rest) != nil || ResolveNow(resolver.State{}) != nil {
		t.Error("ResolveNow returns a function for a state without one")
	}
	if !state.Attributes.Equal(state.Attributes) || state.Attributes.Equal(rest.Attributes) {
		t.Error("attributes with the function are not compared by identity")
	}
}
