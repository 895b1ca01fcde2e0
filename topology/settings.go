package topology

import (
	"time"

	"github.com/understudy-lb/understudy/internal/lbconfig"
)

// Settings are those of the policies of a tree. They must be the same in every update
// of a channel, because PickFirst decides the type of a policy. The zero value leaves
// all to the policies' defaults.
type Settings struct {
	// FailoverTimeout is how long a priority may take to connect before the next one
	// is tried, too.
	FailoverTimeout time.Duration
	// FailbackDelay is how long a priority must work again before calls go back to it.
	FailbackDelay time.Duration
	// SlowStart is the time in which the share of an endpoint grows to its full
	// weight after it was connected.
	SlowStart time.Duration
	// PickFirst sends the calls of a locality to the first of its endpoints that can
	// be connected, in place of all by their weights.
	PickFirst bool
}

// leaf returns the policy over the endpoints of a locality.
func (s Settings) leaf() lbconfig.Policy {
	if s.PickFirst {
		return lbconfig.Named(pickFirstName, nil)
	}
	config := lbconfig.NewWeightedRoundRobin()
	config.StartPoint = startPoint
	if s.SlowStart > 0 {
		config.SlowStart = lbconfig.NewSlowStart()
		config.SlowStart.Window = lbconfig.Duration(s.SlowStart)
	}
	return lbconfig.Named(weightedRoundRobinName, config)
}
