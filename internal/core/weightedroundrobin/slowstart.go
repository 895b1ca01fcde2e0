package weightedroundrobin

import (
	"math"
	"time"
)

// SlowStart gradually increases an endpoint's weight for a time of Window after it has become
// READY, like Envoy's slow_start. A Window of 0 turns it off.
type SlowStart struct {
	Window           time.Duration
	Aggression       float64
	MinWeightPercent float64
}

// slowStartSteps is the number of steps in a window. With this many, the load grows smoothly.
const slowStartSteps = 50

// slowStartScale is a factor for all weights while any child is in slow start. It lets us represent
// a fraction of a weight of 1 as an integer.
const slowStartScale = 1000

// Factor returns what fraction of its weight an endpoint has when it's been READY for that long.
func (s SlowStart) Factor(ready time.Duration) float64 {
	if ready >= s.Window {
		return 1
	}
	grown := math.Pow(max(ready.Seconds(), 1)/s.Window.Seconds(), 1/s.Aggression)
	return min(1, max(s.MinWeightPercent/100, grown))
}

func (s SlowStart) Step() time.Duration {
	return max(s.Window/slowStartSteps, time.Millisecond)
}

// slowStartWeight never returns less than 1, so that the endpoint gets at least some calls.
func slowStartWeight(weight, scale uint32, factor float64) uint32 {
	return max(1, uint32(float64(weight)*float64(scale)*factor))
}
