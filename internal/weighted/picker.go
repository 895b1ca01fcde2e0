// Package weighted has the picker of a policy whose children get calls by weight.
package weighted

import (
	"sync/atomic"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/edf"
)

// Picker picks among children in the order of their deadlines (gRFC A34), and knows
// how far they have come. It is safe for concurrent use.
type Picker struct {
	scheduler *edf.Scheduler // nil for one child
	pickers   []balancer.Picker
	places    []*Place
	picked    atomic.Bool // of one child: whether it was
}

// New returns a picker of the children whose pickers, weights and places are given, at
// least one. It keeps pickers and places. One child needs no schedule.
func New(pickers []balancer.Picker, weights []uint32, places []*Place) *Picker {
	p := &Picker{pickers: pickers, places: places}
	if len(pickers) > 1 {
		p.scheduler = edf.New(schedule(weights, places))
	}
	return p
}

// Pick lets the picker of the next child pick.
func (p *Picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	if p.scheduler != nil {
		return p.pickers[p.scheduler.Next()].Pick(info)
	}
	// Not stored each time: that would have all cores wait for one another.
	if !p.picked.Load() {
		p.picked.Store(true)
	}
	return p.pickers[0].Pick(info)
}

// Failure returns what a call fails with that is given to one of the children, nil
// where none of their pickers tells; see shell.FailureOf.
func (p *Picker) Failure() error {
	for _, picker := range p.pickers {
		if f, ok := picker.(interface{ Failure() error }); ok && f.Failure() != nil {
			return f.Failure()
		}
	}
	return nil
}

// Len returns among how many children it picks.
func (p *Picker) Len() int { return len(p.pickers) }

// Leaves returns among how many children it picks in the end, where those of its
// children count that are such pickers themselves.
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

// Lefts returns what is left of the children's intervals; nil for one child.
func (p *Picker) Lefts() []edf.Left {
	if p.scheduler == nil {
		return nil
	}
	return p.scheduler.Lefts()
}

// Save stores the children's places, for their next picker. Picks made later are not
// counted.
func (p *Picker) Save() {
	switch {
	case p.scheduler == nil:
		if p.picked.Load() {
			*p.places[0] = Place{left: edf.Full}
		}
	case p.scheduler.Begun(): // else everything is where it was
		for i, left := range p.scheduler.Lefts() {
			*p.places[i] = Place{left: left}
		}
	}
}
