package weightedroundrobin

import (
	"math"
	"time"
)

// SlowStart gradually increases the weight of an endpoint during the time Window after it has
// become READY, like Envoy's slow_start. A Window of 0 disables slow start.
type SlowStart struct {
	Window           time.Duration
	Aggression       float64
	MinWeightPercent float64
}

// slowStartSteps is the number of steps in which a weight grows during a window. It is large enough
// that the load grows smoothly.
const slowStartSteps = 50

// slowStartScale is a factor for all weights while a child is in its slow-start window. It allows
// fractions of a weight of 1 to be represented as integers.
const slowStartScale = 1000

// Factor returns the fraction of its weight that an endpoint has after it has been READY for the
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

// slowStartWeight returns weight·factor·scale. The result is at least 1, so that the endpoint gets
// some calls.
func slowStartWeight(weight, scale uint32, factor float64) uint32 {
	return max(1, uint32(float64(weight)*float64(scale)*factor))
}
