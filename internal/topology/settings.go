package topology

import (
	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/options"
)

// Settings are the settings of a tree's policies. They must be the same in every update
// of a channel, because PickFirst decides the type of a policy.
type Settings options.Settings

// choice returns the configuration of the top of the tree without its children.
func (s Settings) choice() *lbconfig.Priority {
	top := lbconfig.NewPriority()
	options.Copy(top, s)
	return top
}

// outlierDetection returns the policy of one priority, with child below it. The policy
// is always there, and does nothing unless the channel asks for it or, where that says
// nothing, the priority's cluster.
func (s Settings) outlierDetection(cluster *OutlierDetection, child lbconfig.Policy) lbconfig.Policy {
	config := lbconfig.NewOutlierDetection()
	switch {
	case s.PickFirst:
	case s.OutlierDetection:
		config = forFewEndpoints()
	case cluster != nil && !s.NoOutlierDetection:
		*config = *cluster.config
	}
	config.ChildPolicy = child
	return lbconfig.Named(outlierDetectionName, config)
}

// forFewEndpoints returns what suits two endpoints and a few calls a second. A50's
// defaults are for large fleets.
func forFewEndpoints() *lbconfig.OutlierDetection {
	config := lbconfig.NewOutlierDetection()
	config.MaxEjectionPercent = 100
	config.FailurePercentageEjection = lbconfig.NewFailurePercentageEjection()
	config.FailurePercentageEjection.MinimumHosts = 1
	config.FailurePercentageEjection.RequestVolume = 10
	config.ConsecutiveFailuresEjection = lbconfig.NewConsecutiveFailuresEjection()
	config.ReportEmptied = true
	return config
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
