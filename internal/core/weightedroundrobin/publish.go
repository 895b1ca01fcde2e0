package weightedroundrobin

import (
	"math"
	"time"
)

// PickerInterval limits how often pickers are built: the minimum time between two pickers is
// PickerInterval multiplied by the number of READY children. If 10,000 endpoints connect at the
// same time, the policy builds a picker every 10 ms instead of 10,000 pickers. Before the next
// picker, endpoints that have just connected get no calls, and a call waits if the endpoint that it
// picks has just lost its connection.
const PickerInterval = time.Microsecond

// FewChildren is the maximum number of READY children for which building a picker costs less than
// starting a timer that delays it. With at most this number, pickers are not delayed.
const FewChildren = 256

type publication struct {
	published    State
	hasPublished bool // Publish has been called
	publishedAt  time.Time
	outdated     bool // the published picker is out of date
	publishNow   bool // a state must be published without a delay
	inSlowStart  bool // a READY child is in its slow-start window
}

// End ends an update. A state must then be published immediately, unless the policy is READY and
// the update does not change the picker.
func (c *Core[T]) End() { c.publishNow = c.outdated || c.published != Ready }

// Outdated requests a new picker, which PickerInterval may delay.
func (c *Core[T]) Outdated() { c.outdated = true }

// Due reports whether a state must be published, and when. The zero time means immediately.
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

// Publish records and returns the state to publish. For Ready, the picker must contain the children
// that Core.Ready returns.
func (c *Core[T]) Publish(now time.Time) State {
	c.published, c.hasPublished, c.publishedAt = c.State(), true, now
	c.outdated, c.publishNow, c.inSlowStart = false, false, false
	return c.published
}

// Ready returns the READY children in order, with their weights. A child in its slow-start window
// has a reduced weight. The caller must not modify children.
func (c *Core[T]) Ready(now time.Time) (children []*Child[T], weights []uint32) {
	n := c.count[Ready]
	if children = c.order; n < len(c.order) {
		children = make([]*Child[T], 0, n)
		for _, child := range c.order {
			if child.state == Ready {
				children = append(children, child)
			}
		}
	}
	weights = make([]uint32, len(children))
	for i, child := range children {
		weights[i] = child.weight
	}
	if n > 1 && c.config.SlowStart.Window > 0 {
		c.slowStart(now, children, weights)
	}
	return children, weights
}

func (c *Core[T]) slowStart(now time.Time, children []*Child[T], weights []uint32) {
	s := c.config.SlowStart
	for _, child := range children {
		c.inSlowStart = c.inSlowStart || s.Factor(now.Sub(c.epoch)-child.readySince) < 1
	}
	if !c.inSlowStart {
		return
	}
	scale := min(slowStartScale, uint32(math.MaxUint32/c.sum))
	for i, child := range children {
		weights[i] = slowStartWeight(child.weight, scale, s.Factor(now.Sub(c.epoch)-child.readySince))
	}
}
