// Package weighted implements the picker for policies that distribute calls among children by
// weight.
package weighted

import (
	"sync/atomic"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/lb/edf"
)

// Picker picks children by weight, in the order of their deadlines (gRFC A34). Save hands the
// children's positions in this order over to the next picker. Picker is safe for concurrent use.
type Picker struct {
	scheduler   *edf.Scheduler
	pickers     []balancer.Picker // nil if there are several children with a fixed subchannel each
	leaves      fixedLeaves
	size        int
	position    func(i int) *Position
	picksBefore uint64 // with a single child, what PicksOf returned when this picker was created
	hasPicked   atomic.Bool
}

// New returns a picker of children, one per weight. There must be at least one. picker and position
// return the picker and the position of child i. New doesn't call picker after it has returned, but
// Save will update the positions.
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
	// If we stored this on every pick, cores would compete for the cache line.
	if !p.hasPicked.Load() {
		p.hasPicked.Store(true)
	}
	return p.pickers[0].Pick(info)
}

// Picks returns the number of picks. With a single child, that's how many the child's picker has
// counted since New, or 0 if it doesn't count. Picks doesn't block.
func (p *Picker) Picks() uint64 {
	if p.scheduler != nil {
		return p.scheduler.Picked()
	}
	return PicksOf(p.pickers[0]) - p.picksBefore
}

// Counts returns the number of picks per child. It may have to wait while the scheduler computes
// picks.
func (p *Picker) Counts() []uint64 {
	if p.scheduler != nil {
		return p.scheduler.Counts()
	}
	return []uint64{p.Picks()}
}

func PicksOf(picker balancer.Picker) uint64 {
	if p, ok := picker.(interface{ Picks() uint64 }); ok {
		return p.Picks()
	}
	return 0
}

type Counting struct {
	balancer.Picker
	picks atomic.Uint64
}

func (c *Counting) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	c.picks.Add(1)
	return c.Picker.Pick(info)
}

func (c *Counting) Picks() uint64 { return c.picks.Load() }

func (p *Picker) Failure() error {
	for _, picker := range p.pickers {
		if f, ok := picker.(interface{ Failure() error }); ok && f.Failure() != nil {
			return f.Failure()
		}
	}
	return nil
}

func (p *Picker) Len() int { return p.size }

// Leaves returns how many fixed subchannels picks choose from, or else how many children.
func (p *Picker) Leaves() int { return max(p.size, len(p.leaves.subConns)) }

// Save stores the children's positions for the next picker. Picks after that don't change them.
func (p *Picker) Save() {
	switch {
	case p.scheduler == nil:
		if p.hasPicked.Load() || p.Picks() > 0 {
			*p.position(0) = Position{left: edf.Full}
		}
	case p.scheduler.Begun(): // before the first pick, nothing has moved
		for i, left := range p.scheduler.Lefts() {
			*p.position(i) = Position{left: left}
		}
	}
}
