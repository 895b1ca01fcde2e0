package weightedroundrobin

import (
	"math"
	"time"
)

// SlowStart gradually increases the share of an endpoint that has just become READY until
// Window is over, like Envoy's slow_start. It is disabled if Window is 0.
type SlowStart struct {
	Window           time.Duration
	Aggression       float64
	MinWeightPercent float64
}

// slowStartSteps is the number of times that the shares are computed within a window. It is
// large enough that the steps are not visible in an endpoint's load.
const slowStartSteps = 50

// slowStartScale multiplies all weights while an endpoint is in its window, so that a fraction
// of weight 1 can be represented as an integer.
const slowStartScale = 1000

// Factor returns the fraction of its weight, from 0 to 1, that an endpoint has when it has been
// READY for the given time.
func (s SlowStart) Factor(ready time.Duration) float64 {
	if ready >= s.Window {
		return 1
	}
	grown := math.Pow(max(ready.Seconds(), 1)/s.Window.Seconds(), 1/s.Aggression)
	return min(1, max(s.MinWeightPercent/100, grown))
}

// Step returns the time between two computations of the shares.
func (s SlowStart) Step() time.Duration {
	return max(s.Window/slowStartSteps, time.Millisecond)
}

// slowStartWeight returns the given fraction of a weight, multiplied by scale. It is at least
// 1, so that an endpoint in its window receives some calls.
func slowStartWeight(weight, scale uint32, factor float64) uint32 {
	return max(1, uint32(float64(weight)*float64(scale)*factor))
}
