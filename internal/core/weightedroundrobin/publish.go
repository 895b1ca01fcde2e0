package weightedroundrobin

import (
	"math"
	"time"
)

// PickerInterval says how often a picker of many children is made: at most once in so
// much time for each of them, however often they report: 10,000 endpoints that come up together cost a picker
// every 10 ms instead of 10,000 pickers of up to 10,000 endpoints. What is waited
// for is only that calls spread to one endpoint more; a call that was given an
// endpoint just lost waits for the next picker.
const PickerInterval = time.Microsecond

// FewChildren is how many children make a picker that costs less than a timer.
const FewChildren = 256

// publication is what the core needs to know of the states that are published.
type publication struct {
	published State     // last
	begun     bool      // whether any was
	at        time.Time // when it was
	stale     bool      // what was published last is not what would be now
	urgent    bool      // and it is not to wait
	growing   bool      // a READY child is in its slow-start window
}

// End ends an update: its state is published at once, unless the picker in use would
// be made again as it is, as where an update is about another locality.
func (c *Core[T]) End() { c.urgent = c.stale || c.published != Ready }

// Outdated has the state published again, as it is with another picker.
func (c *Core[T]) Outdated() { c.stale = true }

// Due returns when the policy's state is to be published, the zero time for at once, and
// whether it is.
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

// Publish returns the state that is to be published, and takes it for published. Ready
// says what the picker is made of.
func (c *Core[T]) Publish(now time.Time) State {
	c.published, c.begun, c.at = c.State(), true, now
	c.stale, c.urgent, c.growing = false, false, false
	return c.published
}

// Ready returns the children that are READY, in order, and their weights, of which those
// of children in their slow-start window are less than they will be.
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

// slowStart lessens the weights of the children that are in their window.
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
