package weightedroundrobin

import (
	"math"
	"slices"
	"time"
)

// PickerInterval is the minimum time between two pickers for each READY child. If 10,000 endpoints
// connect at the same time, we build a picker every 10 ms rather than 10,000 of them. The price is
// that until the next picker, new connections get no calls, and a call that picks a connection that
// was just lost has to wait.
const PickerInterval = time.Microsecond

// FewChildren is how many READY children there can be before building a picker costs more than a
// timer to delay it would. Up to this number, we don't delay pickers.
const FewChildren = 256

type publication struct {
	published    State
	hasPublished bool
	publishedAt  time.Time
	outdated     bool // we need a new picker
	publishNow   bool // publish without waiting for PickerInterval
	inSlowStart  bool // some READY child is in its slow-start window
}

// End ends an update. We publish right after that, unless we're READY and still have the right
// picker.
func (c *Core[T]) End() { c.publishNow = c.outdated || c.published != Ready }

func (c *Core[T]) Outdated() { c.outdated = true }

// Due reports whether we need to publish, and when. The zero time means right away.
func (c *Core[T]) Due() (when time.Time, due bool) {
	if !c.hasPublished || c.publishNow || c.published != c.State() {
		return time.Time{}, true
	}
	var interval time.Duration
	if n := c.count[Ready]; n > FewChildren {
		interval = time.Duration(n) * PickerInterval
	}
	switch {
	case c.outdated:
		return c.publishedAt.Add(interval), true
	case c.inSlowStart:
		return c.publishedAt.Add(max(interval, c.config.SlowStart.Step())), true
	}
	return time.Time{}, false
}

// Publish records and returns the state to publish. If it's Ready, the picker must use the children
// that Core.Ready returns.
func (c *Core[T]) Publish(now time.Time) State {
	c.published, c.hasPublished, c.publishedAt = c.State(), true, now
	c.outdated, c.publishNow, c.inSlowStart = false, false, false
	return c.published
}

// Ready returns the READY children and their weights, in order. During slow start, weights are
// reduced. Don't modify children.
func (c *Core[T]) Ready(now time.Time) (children []*Child[T], weights []uint32) {
	n := c.count[Ready]
	if children = c.order; n < len(c.order) {
		children = slices.DeleteFunc(slices.Clone(c.order), func(child *Child[T]) bool { return child.state != Ready })
	}
	weights = make([]uint32, len(children))
	for i, child := range children {
		weights[i] = child.weight
	}
	if n > 1 {
		c.slowStart(now, children, weights)
	}
	return children, weights
}

func (c *Core[T]) slowStart(now time.Time, children []*Child[T], weights []uint32) {
	s := c.config.SlowStart
	c.inSlowStart = slices.ContainsFunc(children, func(child *Child[T]) bool { return s.Factor(now.Sub(c.epoch)-child.readySince) < 1 })
	if !c.inSlowStart {
		return
	}
	scale := min(slowStartScale, uint32(math.MaxUint32/c.sum))
	for i, child := range children {
		weights[i] = slowStartWeight(child.weight, scale, s.Factor(now.Sub(c.epoch)-child.readySince))
	}
}
