package weighted

import (
	"testing"

	"google.golang.org/grpc/balancer"
)

func TestLeaves(t *testing.T) {
	pickerOf := func(children ...balancer.Picker) *Picker {
		weights, positions := make([]uint32, len(children)), make([]*Position, len(children))
		for i := range children {
			position := NewPosition(false)
			weights[i], positions[i] = 1, &position
		}
		return newPicker(children, weights, positions)
	}
	leaf := indexPicker{0}
	tree := pickerOf(pickerOf(leaf, leaf, leaf), leaf, pickerOf(leaf))
	if got := tree.Leaves(); got != 5 || tree.Len() != 3 {
		t.Errorf("%d leaves below %d children, want 5 below 3", got, tree.Len())
	}
}
