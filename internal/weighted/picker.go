// Package weighted is the picker of policies whose children get calls by weight.
package weighted

import (
	"sync/atomic"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/edf"
)

// Picker picks children in the order of their deadlines (gRFC A34), and knows how far
// each has come. It is safe for concurrent use.
type Picker struct {
	scheduler *edf.Scheduler // nil for one child
	pickers   []balancer.Picker
	places    []*Position
	before    uint64      // with one child: PicksOf it when this picker was made
	picked    atomic.Bool // with one child: whether it was picked
	readyPart float64     // the part of the weight that is there
	unproven  float64     // and the part that is unproven
	failed    float64     // the part of all weight that has failed
}

// ReadyPart returns the part of the weight that is there to be picked, of what is
// READY or has failed; see shell.TierOf.
func (p *Picker) ReadyPart() float64 { return p.readyPart }

// UnprovenPart returns the part of that weight that is unproven; see shell.TierOf.
func (p *Picker) UnprovenPart() float64 { return p.unproven }

// FailedPart returns the part of all weight that has failed; see shell.TierOf.
func (p *Picker) FailedPart() float64 { return p.failed }

// SetFailedPart sets what FailedPart returns, which is 0 otherwise, before the first pick.
func (p *Picker) SetFailedPart(part float64) { p.failed = part }

// SetParts sets what ReadyPart and UnprovenPart return, which are 1 and 0 otherwise, before
// the first pick.
func (p *Picker) SetParts(ready, unproven float64) { p.readyPart, p.unproven = ready, unproven }

// New returns a picker of the children with these pickers, weights and places, at least
// one. It keeps pickers and places. One child needs no scheduler.
func New(pickers []balancer.Picker, weights []uint32, places []*Position) *Picker {
	p := &Picker{pickers: pickers, places: places, readyPart: 1}
	if len(pickers) > 1 {
		p.scheduler = edf.New(schedule(weights, places))
	} else {
		p.before = PicksOf(pickers[0])
	}
	return p
}

// Pick lets the picker of the next child pick.
func (p *Picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	if p.scheduler != nil {
		return p.pickers[p.scheduler.Next()].Pick(info)
	}
	// Not stored each time: all cores would wait for one another.
	if !p.picked.Load() {
		p.picked.Store(true)
	}
	return p.pickers[0].Pick(info)
}

// Picks returns how many picks there were, as far as that is known: of one child it is
// what the child's picker says that it was picked, or nothing. It costs a pick nothing,
// and never waits.
func (p *Picker) Picks() uint64 {
	if p.scheduler != nil {
		return p.scheduler.Picked()
	}
	return PicksOf(p.pickers[0]) - p.before
}

// Counts returns how many picks each child had, as Picks knows it. It may wait while the
// scheduler makes picks, and for nothing else.
func (p *Picker) Counts() []uint64 {
	if p.scheduler != nil {
		return p.scheduler.Counts()
	}
	return []uint64{p.Picks()}
}

// PicksOf returns how often a picker was picked, where it counts that.
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

// Pick picks, and counts.
func (c *Counting) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	c.picks.Add(1)
	return c.Picker.Pick(info)
}

// Picks returns how many picks there were.
func (c *Counting) Picks() uint64 { return c.picks.Load() }

// Failure returns the error of a child whose picker tells it, nil where none does; see
// shell.FailureOf.
func (p *Picker) Failure() error {
	for _, picker := range p.pickers {
		if f, ok := picker.(interface{ Failure() error }); ok && f.Failure() != nil {
			return f.Failure()
		}
	}
	return nil
}

// Len returns the number of children.
func (p *Picker) Len() int { return len(p.pickers) }

// Leaves returns the number of children, where a child that is a Picker itself counts
// as its own leaves.
func (p *Picker) Leaves() int {
	n := 0
	for _, child := range p.pickers {
		if inner, ok := child.(*Picker); ok {
			n += inner.Leaves()
		} else {
			n++
		}
	}
	return n
}

// Lefts returns the Left of each child, nil for one child.
func (p *Picker) Lefts() []edf.Left {
	if p.scheduler == nil {
		return nil
	}
	return p.scheduler.Lefts()
}

// Save stores the children's places for their next picker. Later picks do not count.
func (p *Picker) Save() {
	switch {
	case p.scheduler == nil:
		if p.picked.Load() {
			*p.places[0] = Position{left: edf.Full}
		}
	case p.scheduler.Begun(): // otherwise no place has changed
		for i, left := range p.scheduler.Lefts() {
			*p.places[i] = Position{left: left}
		}
	}
}
