package weightedroundrobin

import (
	"sync"
	"weak"

	"google.golang.org/grpc/balancer"

	core "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/lb/leaf"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/weighted"
)

func seriesOf(state balancer.State) leaf.Series {
	return leaf.SeriesOf(state.ConnectivityState, shell.FailureOf(state.Picker))
}

func (p *policy) counts() (current leaf.Counts) {
	for state, n := range p.core.Count() {
		current[state] = int64(n)
	}
	for _, named := range [...]leaf.Series{leaf.FailedTLS, leaf.Ejected} {
		current[named] = p.failures[named]
		current[core.TransientFailure] -= current[named]
	}
	return current
}

// pickCount adds up the picks of all the policy's pickers. This costs nothing since schedulers
// count picks anyway. Pickers with a single endpoint have no scheduler.
type pickCount struct {
	mu         sync.Mutex
	picker     *weighted.Picker
	taken      uint64                        // the part of picker's picks that's already in picks
	lastPicker weak.Pointer[weighted.Picker] // calls may still be using the previous one
	lastTaken  uint64
	picks      uint64
}

func (c *pickCount) use(picker *weighted.Picker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read()
	c.lastPicker, c.lastTaken = weak.Make(c.picker), c.taken
	c.picker, c.taken = picker, 0
}

// read must be called with mu held.
func (c *pickCount) read() {
	add := func(p *weighted.Picker, taken *uint64) {
		if p != nil {
			picks := p.Picks()
			c.picks += picks - *taken
			*taken = picks
		}
	}
	add(c.lastPicker.Value(), &c.lastTaken)
	add(c.picker, &c.taken)
}

func (c *pickCount) take() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read()
	picks := c.picks
	c.picks = 0
	return picks
}
