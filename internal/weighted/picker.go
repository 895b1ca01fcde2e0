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
	lefts     []*edf.Left
	picked    atomic.Bool // of one child: whether it was
}

// New returns a picker of the children whose pickers are given, at least one, with
// their entries in the schedule. It keeps pickers and lefts, which say where Save
// stores what is left of the children's intervals. One child needs no schedule.
func New(pickers []balancer.Picker, entries []edf.Entry, lefts []*edf.Left) *Picker {
	p := &Picker{pickers: pickers, lefts: lefts}
	if len(entries) > 1 {
		p.scheduler = edf.New(entries)
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

// Len returns among how many children it picks.
func (p *Picker) Len() int { return len(p.pickers) }

// Save stores what is left of the children's intervals, for their next picker. Picks
// made later are not counted.
func (p *Picker) Save() {
	if p.scheduler == nil {
		if p.picked.Load() {
			*p.lefts[0] = edf.Full
		}
		return
	}
	for i, left := range p.scheduler.Lefts() {
		*p.lefts[i] = left
	}
}
