package stateattr

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc/resolver"
)

func TestTakeResolveNow(t *testing.T) {
	var calls []string
	state := SetResolveNow(resolver.State{}, func(child string, ignored bool) { calls = append(calls, fmt.Sprint(child, ignored)) })
	resolveNow, without := TakeResolveNow(state)
	resolveNow("p1", true)
	if !slices.Equal(calls, []string{"p1true"}) {
		t.Errorf("resolveNow was called with %q, want p1true", calls)
	}
	if ResolveNow(without) != nil || ResolveNow(resolver.State{}) != nil {
		t.Error("ResolveNow returns a function for a state without one")
	}
	if !state.Attributes.Equal(state.Attributes) || state.Attributes.Equal(without.Attributes) {
		t.Error("attributes with the function are not compared by identity")
	}
}
