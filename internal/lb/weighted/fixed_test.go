package weighted

import (
	"slices"
	"testing"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/lb/shell"
)

// Pickers of fixed children skip the children's pickers. The picks, counts and positions must be
// the same as without this shortcut.
func TestFixedLeavesPickInSameOrder(t *testing.T) {
	const picks = 1000
	type result struct {
		order         []int
		outer, inner  uint64
		counts        []uint64
		outerPosition Position
		lefts         []Position
	}
	run := func(child func(int) balancer.Picker) (r result) {
		c := newChildren(false, 5, 1, 3, 1)
		var pickers []balancer.Picker
		var positions []*Position
		for i := range c.weights {
			pickers, positions = append(pickers, child(i)), append(positions, &c.positions[i])
		}
		inner := newPicker(pickers, c.weights, positions)
		outerPosition := Position{left: 1}
		outer := newPicker([]balancer.Picker{inner}, []uint32{7}, []*Position{&outerPosition})
		unused := Position{left: 1}
		newPicker([]balancer.Picker{inner}, []uint32{7}, []*Position{&unused}).Save()
		if unused.left != 1 {
			t.Error("a picker without picks changed its child's position")
		}
		for range picks {
			r.order = append(r.order, pick(outer))
		}
		inner.Save()
		outer.Save()
		r.outer, r.inner, r.counts, r.outerPosition, r.lefts = outer.Picks(), inner.Picks(), outer.Counts(), outerPosition, c.positions
		return r
	}
	fixed := run(func(i int) balancer.Picker { return &shell.Fixed{SubConn: indexed{index: i}} })
	other := run(func(i int) balancer.Picker { return indexPicker{i} })
	switch {
	case !slices.Equal(fixed.order, other.order):
		t.Errorf("fixed children were picked in the order %v, others in %v", fixed.order[:20], other.order[:20])
	case fixed.outer != picks || fixed.inner != other.inner || !slices.Equal(fixed.counts, other.counts):
		t.Errorf("fixed children have %d, %d and %d picks, others %d, %d and %d", fixed.outer, fixed.inner, fixed.counts, other.outer, other.inner, other.counts)
	case fixed.outerPosition != other.outerPosition || !slices.Equal(fixed.lefts, other.lefts):
		t.Errorf("fixed children have the positions %v below %v, others %v below %v", fixed.lefts, fixed.outerPosition, other.lefts, other.outerPosition)
	}
}

// If some children have fixed pickers and others do not, each pick must call the child's picker.
func TestMixedChildren(t *testing.T) {
	c := newChildren(false, 1, 1)
	p := newPicker([]balancer.Picker{&shell.Fixed{SubConn: indexed{index: 0}}, indexPicker{1}}, c.weights, []*Position{&c.positions[0], &c.positions[1]})
	if got := []int{pick(p), pick(p), pick(p), pick(p)}; !slices.Equal(got, []int{0, 1, 0, 1}) {
		t.Errorf("picks %v, want 0 and 1 in turn", got)
	}
}
