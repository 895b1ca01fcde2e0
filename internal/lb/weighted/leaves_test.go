package weighted

import (
	"testing"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/lb/shell"
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
	leaf := &shell.Fixed{}
	tree := pickerOf(pickerOf(leaf, leaf, leaf))
	if got := tree.Leaves(); got != 3 || tree.Len() != 1 {
		t.Errorf("%d leaves below %d children, want 3 below 1", got, tree.Len())
	}
}
