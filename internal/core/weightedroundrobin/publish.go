package weightedroundrobin

import (
	"math"
	"time"
)

// PickerInterval is the least time between two pickers of many children, for each child.
// So 10,000 endpoints that come up together cost a picker every 10 ms instead of 10,000
// pickers of up to 10,000 endpoints. Meanwhile calls do not reach the newest endpoints,
// and a call that picks an endpoint just lost waits for the next picker.
const PickerInterval = time.Microsecond

// FewChildren is the largest number of children whose picker costs less than a timer.
const FewChildren = 256

// publication is what the core needs to know of the states that are published.
type publication struct {
	published State     // the last state published
	begun     bool      // something was published
	at        time.Time // when it was published
	stale     bool      // the last publication is out of date
	urgent    bool      // and the next must not wait
	growing   bool      // a READY child is in its slow-start window
}

// End ends an update. Its state is published at once, unless the picker would be the
// same again, as when an update is about another locality.
func (c *Core[T]) End() { c.urgent = c.stale || c.published != Ready }

// Outdated makes the core publish the same state again, with another picker.
func (c *Core[T]) Outdated() { c.stale = true }

// Due returns whether the policy's state is to be published, and when; the zero time
// means at once.
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

// Publish returns the state to publish, and notes it as published. Ready returns what
// the picker is made of.
func (c *Core[T]) Publish(now time.Time) State {
	c.published, c.begun, c.at = c.State(), true, now
	c.stale, c.urgent, c.growing = false, false, false
	return c.published
}

// Ready returns the children that are READY, in order, and their weights. Children in
// their slow-start window have reduced weights.
func (c *Core[T]) Ready(now time.Time) (children []*Child[T], weights []uint32) {
	n := c.count[Ready]
	children = make([]*Child[T], 0, n)
	weights = make([]uint32, 0, n)
	for _, child := range c.order {
		if child.state == Ready {
			children = append(children, child)
			weights = append(weights, child.weight)
		}
	}
	if n > 1 && c.config.SlowStart.Window > 0 {
		c.slowStart(now, children, weights)
	}
	return children, weights
}

// slowStart reduces the weights of the children that are in their window.
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
