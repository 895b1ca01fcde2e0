package weightedroundrobin

import (
	"math"
	"time"

	"github.com/understudy-lb/understudy/internal/lbconfig"
)

// slowStartSteps is how many times within a window the shares are computed anew:
// often enough that a step is not seen in an endpoint's load.
const slowStartSteps = 50

// slowStartScale is what all weights are multiplied by while an endpoint is in its
// window, so that a part of a weight, which may well be 1, is still a whole number.
const slowStartScale = 1000

// slowStartFactor returns the part of its weight that an endpoint gets when it has been
// READY for the given time: from 0 to 1, and 1 once the window is over.
func slowStartFactor(s *lbconfig.SlowStart, ready time.Duration) float64 {
	window := time.Duration(s.Window)
	if ready >= window {
		return 1
	}
	grown := math.Pow(max(ready.Seconds(), 1)/window.Seconds(), 1/s.Aggression)
	return min(1, max(s.MinWeightPercent/100, grown))
}

// slowStartStep is the time from one computation of the shares to the next.
func slowStartStep(s *lbconfig.SlowStart) time.Duration {
	return max(time.Duration(s.Window)/slowStartSteps, time.Millisecond)
}

// slowStartWeight returns the part of a weight, multiplied by scale, and at least
// 1: an endpoint in its window has a small share, but not none.
func slowStartWeight(weight, scale uint32, factor float64) uint32 {
	return max(1, uint32(float64(weight)*float64(scale)*factor))
}
