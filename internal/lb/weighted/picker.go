// Package weighted implements the picker of policies that distribute calls to their children by
// weight.
package weighted

import (
	"sync/atomic"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/lb/edf"
)

// Picker picks children by their weights, in the order of their deadlines (gRFC A34). Save passes
// the children's positions in this order to the next picker. Picker is safe for concurrent use.
type Picker struct {
	scheduler   *edf.Scheduler    // nil if there is a single child
	pickers     []balancer.Picker // nil if there are several children and each has a fixed subchannel
	leaves      fixedLeaves
	size        int
	position    func(i int) *Position
	picksBefore uint64 // if there is a single child: the result of PicksOf for it when this picker was created
	hasPicked   atomic.Bool
}

// New returns a picker of children, one for each weight, of which there must be at least one. picker
// and position return the picker of child i, and its position, which Save updates. New calls picker
// only before it returns.
func New(weights []uint32, picker func(i int) balancer.Picker, position func(i int) *Position) *Picker {
	p := &Picker{size: len(weights), position: position}
	if p.size > 1 {
		p.scheduler = schedule(weights, position)
		if p.leaves = fixedLeavesOf(p.scheduler, p.size, picker); p.leaves.scheduler != nil {
			return p
		}
	}
	p.pickers = make([]balancer.Picker, p.size)
	for i := range p.pickers {
		p.pickers[i] = picker(i)
	}
	if p.size == 1 {
		p.picksBefore = PicksOf(p.pickers[0])
		if child, ok := p.pickers[0].(*Picker); ok {
			p.leaves = child.leaves
		}
	}
	return p
}

func (p *Picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	if p.leaves.scheduler != nil {
		return balancer.PickResult{SubConn: p.leaves.subConns[p.leaves.scheduler.Next()]}, nil
	}
	if p.scheduler != nil {
		return p.pickers[p.scheduler.Next()].Pick(info)
	}
	// A store on every pick would make all cores compete for the cache line.
	if !p.hasPicked.Load() {
		p.hasPicked.Store(true)
	}
	return p.pickers[0].Pick(info)
}

// Picks returns the number of picks. If there is a single child, this is the number of picks that
// the child's picker has counted since New, or 0 if that picker does not count. Picks does not
// block.
func (p *Picker) Picks() uint64 {
	if p.scheduler != nil {
		return p.scheduler.Picked()
	}
	return PicksOf(p.pickers[0]) - p.picksBefore
}

// Counts returns the number of picks of each child. It may wait while the scheduler computes picks.
func (p *Picker) Counts() []uint64 {
	if p.scheduler != nil {
		return p.scheduler.Counts()
	}
	return []uint64{p.Picks()}
}

// PicksOf returns the number of picks of a picker, or 0 if the picker does not count.
func PicksOf(picker balancer.Picker) uint64 {
	if p, ok := picker.(interface{ Picks() uint64 }); ok {
		return p.Picks()
	}
	return 0
}

// Counting is a picker that counts its picks.
type Counting struct {
	balancer.Picker
	picks atomic.Uint64
}

func (c *Counting) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	c.picks.Add(1)
	return c.Picker.Pick(info)
}

func (c *Counting) Picks() uint64 { return c.picks.Load() }

// Failure returns the first error that a child's picker reports, or nil (see shell.FailureOf).
func (p *Picker) Failure() error {
	for _, picker := range p.pickers {
		if f, ok := picker.(interface{ Failure() error }); ok && f.Failure() != nil {
			return f.Failure()
		}
	}
	return nil
}

func (p *Picker) Len() int { return p.size }

// Leaves returns the number of fixed subchannels from which picks choose, or else that of children.
func (p *Picker) Leaves() int { return max(p.size, len(p.leaves.subConns)) }

// Save stores the positions of the children for the next picker. Later picks do not change them.
func (p *Picker) Save() {
	switch {
	case p.scheduler == nil:
		if p.hasPicked.Load() || p.Picks() > 0 {
			*p.position(0) = Position{left: edf.Full}
		}
	case p.scheduler.Begun(): // before the first pick, no position has changed
		for i, left := range p.scheduler.Lefts() {
			*p.position(i) = Position{left: left}
		}
	}
}
