package weighted

import (
	"testing"

	"google.golang.org/grpc/balancer"
)

func TestLeaves(t *testing.T) {
	pickerOf := func(children ...balancer.Picker) *Picker {
		weights, places := make([]uint32, len(children)), make([]*Position, len(children))
		for i := range children {
			place := NewPosition(false)
			weights[i], places[i] = 1, &place
		}
		return New(children, weights, places)
	}
	leaf := named{0}
	tree := pickerOf(pickerOf(leaf, leaf, leaf), leaf, pickerOf(leaf))
	if got := tree.Leaves(); got != 5 || tree.Len() != 3 {
		t.Errorf("%d leaves below %d children, want 5 below 3", got, tree.Len())
	}
}
