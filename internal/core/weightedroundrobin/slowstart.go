package weightedroundrobin

import (
	"math"
	"time"
)

// SlowStart increases the share of an endpoint over Window after it has become READY, like Envoy's
// slow_start. A Window of 0 disables it.
type SlowStart struct {
	Window           time.Duration
	Aggression       float64
	MinWeightPercent float64
}

// slowStartSteps is the number of steps in which a weight grows during a window. It is large enough
// that the load grows smoothly.
const slowStartSteps = 50

// slowStartScale is a factor for all weights while a child is in its window. It makes fractions of
// a weight of 1 representable as integers.
const slowStartScale = 1000

// Factor returns the fraction of its weight that an endpoint gets when it has been READY for a
// given time.
func (s SlowStart) Factor(ready time.Duration) float64 {
	if ready >= s.Window {
		return 1
	}
	grown := math.Pow(max(ready.Seconds(), 1)/s.Window.Seconds(), 1/s.Aggression)
	return min(1, max(s.MinWeightPercent/100, grown))
}

// Step returns the time between two steps.
func (s SlowStart) Step() time.Duration {
	return max(s.Window/slowStartSteps, time.Millisecond)
}

// slowStartWeight returns a fraction of a weight, multiplied by scale. The result is at least 1, so
// that the endpoint gets some calls.
func slowStartWeight(weight, scale uint32, factor float64) uint32 {
	return max(1, uint32(float64(weight)*float64(scale)*factor))
}
