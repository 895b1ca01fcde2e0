package weightedroundrobin

import (
	"math"
	"time"
)

// SlowStart gives an endpoint that has just become READY a share that grows over the
// window until it is the one of its weight, as Envoy's slow_start does. Without a
// window there is no slow start.
type SlowStart struct {
	Window           time.Duration
	Aggression       float64
	MinWeightPercent float64
}

// slowStartSteps is how many times within a window the shares are computed anew: often
// enough that no step shows in an endpoint's load.
const slowStartSteps = 50

// slowStartScale multiplies all weights while an endpoint is in its window, so that a
// fraction of a weight, which may be 1, is still a whole number.
const slowStartScale = 1000

// Factor returns the fraction of its weight that an endpoint has after it has been READY
// for the given time. It is from 0 to 1, and 1 once the window is over.
func (s SlowStart) Factor(ready time.Duration) float64 {
	if ready >= s.Window {
		return 1
	}
	grown := math.Pow(max(ready.Seconds(), 1)/s.Window.Seconds(), 1/s.Aggression)
	return min(1, max(s.MinWeightPercent/100, grown))
}

// Step is the time from one computation of the shares to the next.
func (s SlowStart) Step() time.Duration {
	return max(s.Window/slowStartSteps, time.Millisecond)
}

// slowStartWeight returns the fraction of a weight, multiplied by scale. It is at least
// 1: an endpoint in its window has a small share, not none.
func slowStartWeight(weight, scale uint32, factor float64) uint32 {
	return max(1, uint32(float64(weight)*float64(scale)*factor))
}
