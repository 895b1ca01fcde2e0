package weightedroundrobin

import (
	"sync/atomic"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/edf"
)

// position is a picker that knows how far its children have come.
type position interface {
	balancer.Picker
	// save stores into the children what is left of their intervals. Picks made
	// later are not counted.
	save()
}

// weighted picks the READY children in the order of their deadlines.
type weighted struct {
	scheduler *edf.Scheduler
	pickers   []balancer.Picker
	children  []*child
}

// Pick lets the picker of the next child pick.
func (w *weighted) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	return w.pickers[w.scheduler.Next()].Pick(info)
}

func (w *weighted) save() {
	for i, left := range w.scheduler.Lefts() {
		w.children[i].left = left
	}
}

// only picks the one child that is READY.
type only struct {
	picker balancer.Picker
	child  *child
	picked atomic.Bool
}

// Pick lets the picker of the child pick.
func (o *only) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	// Not stored each time: that would have all cores wait for one another.
	if !o.picked.Load() {
		o.picked.Store(true)
	}
	return o.picker.Pick(info)
}

func (o *only) save() {
	if o.picked.Load() {
		o.child.left = edf.Full
	}
}
