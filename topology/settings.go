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
	// OutlierDetection takes endpoints out of use for a while whose calls fail, and
	// priorities of which all do. It has no effect with PickFirst, which does not notice.
	OutlierDetection bool
}

// outlierDetection returns the policy of one priority, with child below it. It is there
// in any case, and does nothing unless it is asked to. A50's defaults are for fleets:
// these make sense for two endpoints and a few calls a second.
func (s Settings) outlierDetection(child lbconfig.Policy) lbconfig.Policy {
	config := lbconfig.NewOutlierDetection()
	if s.OutlierDetection && !s.PickFirst {
		config.MaxEjectionPercent = 100
		config.FailurePercentageEjection = lbconfig.NewFailurePercentageEjection()
		config.FailurePercentageEjection.MinimumHosts = 1
		config.FailurePercentageEjection.RequestVolume = 10
		config.ConsecutiveFailuresEjection = lbconfig.NewConsecutiveFailuresEjection()
		config.ReportEmptied = true
	}
	config.ChildPolicy = child
	return lbconfig.Named(outlierDetectionName, config)
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
