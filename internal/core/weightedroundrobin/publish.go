package weightedroundrobin

import (
	"math"
	"time"
)

// PickerInterval limits how often pickers are built: the minimum time between two is PickerInterval
// times the number of READY children. If 10,000 endpoints connect at the same time, there is a new
// picker every 10 ms instead of 10,000 pickers. Until the next picker, endpoints that have just
// connected get no calls, and a call that picks an endpoint without a connection waits.
const PickerInterval = time.Microsecond

// FewChildren is the largest number of children for which building a picker costs less than
// starting a timer to delay it. Up to this number, there is no delay.
const FewChildren = 256

type publication struct {
	published State
	begun     bool
	at        time.Time
	stale     bool
	urgent    bool
	growing   bool // a READY child is in its slow-start window
}

// End ends an update. A state is then due at once, unless the policy is READY and the picker would
// be the same.
func (c *Core[T]) End() { c.urgent = c.stale || c.published != Ready }

// Outdated makes a new picker due. PickerInterval may delay it.
func (c *Core[T]) Outdated() { c.stale = true }

// Due reports whether a state must be published, and when. A zero time means at once.
func (c *Core[T]) Due() (at time.Time, due bool) {
	if !c.begun || c.urgent || c.published != c.State() {
		return time.Time{}, true
	}
	var interval time.Duration
	if n := c.count[Ready]; n > FewChildren {
		interval = time.Duration(n) * PickerInterval
	}
	switch {
	case c.stale:
		return c.at.Add(interval), true
	case c.growing:
		return c.at.Add(max(interval, c.config.SlowStart.Step())), true
	}
	return time.Time{}, false
}

// Publish records and returns the state to publish. For Ready, the picker must contain the children
// that Core.Ready returns.
func (c *Core[T]) Publish(now time.Time) State {
	c.published, c.begun, c.at = c.State(), true, now
	c.stale, c.urgent, c.growing = false, false, false
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
		c.growing = c.growing || s.Factor(now.Sub(child.readySince)) < 1
	}
	if !c.growing {
		return
	}
	scale := min(slowStartScale, uint32(math.MaxUint32/c.sum))
	for i, child := range children {
		weights[i] = slowStartWeight(child.weight, scale, s.Factor(now.Sub(child.readySince)))
	}
}
