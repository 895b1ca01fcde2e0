package topology

import (
	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/config/options"
)

// Settings are the settings of the policies in a tree. EndpointPolicy must not change while a channel
// exists, because it determines the type of a policy.
type Settings options.Settings

func (s Settings) choice() *lbconfig.Priority {
	top := lbconfig.New[lbconfig.Priority]()
	options.Copy(top, s)
	top.PerPriority = options.Settings(s).InOneList()
	return top
}

// outlierDetection returns the outlier detection policy of one priority. Every priority has this
// policy, but it ejects endpoints only if the channel's settings enable it. If the settings neither
// enable nor disable it, the cluster's configuration is used.
func (s Settings) outlierDetection(cluster *OutlierDetection, child lbconfig.Policy) lbconfig.Policy {
	config := lbconfig.New[lbconfig.OutlierDetection]()
	switch {
	case s.EndpointPolicy.IsPickFirst():
	case s.OutlierDetection == options.On:
		config = forFewEndpoints()
	case cluster != nil && s.OutlierDetection == options.AsClusterSays:
		*config = *cluster.config
	}
	config.ChildPolicy = child
	return lbconfig.MarshalOnlyPolicy(outlierDetectionName, config)
}

// forFewEndpoints returns a configuration that also works with two endpoints and a few calls per
// second. The defaults of A50 need more endpoints and more calls.
func forFewEndpoints() *lbconfig.OutlierDetection {
	config := lbconfig.New[lbconfig.OutlierDetection]()
	config.MaxEjectionPercent = 100
	config.FailurePercentageEjection = lbconfig.New[lbconfig.FailurePercentageEjection]()
	config.FailurePercentageEjection.MinimumHosts = 1
	config.FailurePercentageEjection.RequestVolume = 10
	config.ConsecutiveFailuresEjection = lbconfig.New[lbconfig.ConsecutiveFailuresEjection]()
	return config
}

func (s Settings) leaf() lbconfig.Policy {
	if !s.EndpointPolicy.IsDefault() {
		name, config := s.EndpointPolicy.Split()
		if s.EndpointPolicy.IsPickFirst() {
			name = pickFirstName
		}
		child := lbconfig.RawPolicy(name, config)
		return lbconfig.MarshalOnlyPolicy(endpointPolicyName, &lbconfig.EndpointPolicy{ChildPolicy: child})
	}
	config := lbconfig.New[lbconfig.WeightedRoundRobin]()
	config.StartPoint = startPoint
	if s.SlowStart > 0 {
		config.SlowStart = lbconfig.New[lbconfig.SlowStart]()
		config.SlowStart.Window = lbconfig.Duration(s.SlowStart)
	}
	return lbconfig.MarshalOnlyPolicy(weightedRoundRobinName, config)
}
