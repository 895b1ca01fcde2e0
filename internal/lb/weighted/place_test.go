package weighted

import (
	"errors"
	"math"
	"testing"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/lb/edf"
)

type indexPicker struct{ index int }

type indexed struct {
	balancer.SubConn
	index int
}

func (n indexPicker) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return balancer.PickResult{SubConn: indexed{index: n.index}}, nil
}

type children struct {
	weights   []uint32
	positions []Position
}

func newChildren(random bool, weights ...uint32) *children {
	c := &children{weights: weights}
	for range weights {
		c.positions = append(c.positions, NewPosition(random))
	}
	return c
}

func (c *children) picker(ready ...int) *Picker {
	var pickers []balancer.Picker
	var weights []uint32
	var positions []*Position
	for _, i := range ready {
		pickers = append(pickers, indexPicker{i})
		weights = append(weights, c.weights[i])
		positions = append(positions, &c.positions[i])
	}
	return newPicker(pickers, weights, positions)
}

func newPicker(pickers []balancer.Picker, weights []uint32, positions []*Position) *Picker {
	return New(weights, func(i int) balancer.Picker { return pickers[i] }, func(i int) *Position { return positions[i] })
}

func pick(p *Picker) int {
	result, _ := p.Pick(balancer.PickInfo{})
	return result.SubConn.(indexed).index
}

// With random positions, the first picks of many clients must follow the weights, even if a client
// has replaced pickers before their first picks.
func TestFirstPicksFollowTheWeights(t *testing.T) {
	const clients, picks = 20_000, 8
	for name, first := range map[string]func(*children) *Picker{
		"first picker": func(c *children) *Picker { return c.picker(0, 1, 2) },
		"unused pickers before": func(c *children) *Picker {
			for _, ready := range [][]int{{1}, {1, 2}, {0, 1, 2}} {
				c.picker(ready...).Save()
			}
			return c.picker(0, 1, 2)
		},
	} {
		for _, weights := range [][]uint32{{1, 9, 3}, {1, 1, 1}, {1, 1, 998}} {
			sum := float64(weights[0] + weights[1] + weights[2])
			var got [picks][3]float64
			for range clients {
				p := first(newChildren(true, weights...))
				for k := range picks {
					got[k][pick(p)]++
				}
			}
			for k := range picks {
				for i, w := range weights {
					want := clients * float64(w) / sum
					if tolerance := 5 * math.Sqrt(want*(1-float64(w)/sum)); math.Abs(got[k][i]-want) > tolerance {
						t.Errorf("%s, weights %v: child %d has %.0f picks at position %d, want %.0f ± %.0f",
							name, weights, i, got[k][i], k+1, want, tolerance)
					}
				}
			}
		}
	}
}

// Only a new child may begin at a random position. A child of an earlier picker must keep its
// position. Without random positions, all children must begin at the start of their intervals, as
// in A34.
func TestOnlyNewChildrenStartAtRandom(t *testing.T) {
	c := newChildren(true, 1, 9, 3)
	used := c.picker(0, 1)
	pick(used)
	want := used.scheduler.Lefts()
	used.Save()
	random := c.positions[2].left
	next := c.picker(0, 1, 2)
	if got := next.scheduler.Lefts(); got[0] != want[0] || got[1] != want[1] || got[2] != random {
		t.Errorf("lefts beside a new child = %d, want %d and %d", got, want, random)
	}
	for range 100 {
		for i, left := range newChildren(false, 1, 9, 3).picker(0, 1, 2).scheduler.Lefts() {
			if left != edf.Full {
				t.Fatalf("child %d starts with %d left, want Full", i, left)
			}
		}
	}
}

type failing struct{ err error }

func (f failing) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	panic("Pick was called")
}

func (f failing) Failure() error { return f.err }

func TestFailure(t *testing.T) {
	refused := errors.New("refused")
	positions := []*Position{{}, {}, {}}
	p := newPicker([]balancer.Picker{indexPicker{0}, failing{refused}, failing{errors.New("reset")}}, []uint32{1, 1, 1}, positions)
	if got := p.Failure(); got != refused {
		t.Errorf("failure = %v, want %v", got, refused)
	}
	if got := newPicker([]balancer.Picker{indexPicker{0}}, []uint32{1}, positions[:1]).Failure(); got != nil {
		t.Errorf("failure = %v, want nil", got)
	}
}
