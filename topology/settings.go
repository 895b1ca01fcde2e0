package topology

import (
	"fmt"
	"time"

	"github.com/understudy-lb/understudy/internal/lbconfig"
)

// Settings are the settings of a tree's policies. They must be the same in every update
// of a channel, because PickFirst decides the type of a policy. The zero value stands
// for the policies' defaults.
type Settings struct {
	// FailoverTimeout is how long a priority may take to connect before the next one is
	// used (gRFC A56). 0 or less stands for the default, 10 s.
	FailoverTimeout time.Duration
	// FailbackDelay is how long a priority must have been READY again before calls go
	// back to it. 0 is A56's behaviour: at once.
	FailbackDelay time.Duration
	// SlowStart is how long the share of an endpoint grows after it was connected,
	// until it is the one of its weight. 0 turns it off.
	SlowStart time.Duration
	// PickFirst sends the calls of a locality to the first of its endpoints that
	// connects (gRFC A62). Otherwise they go to all by their weights.
	PickFirst bool
	// MinReady is the part of a priority's weight that is to be READY: below that the
	// calls go to the next one that has as much, if there is one. They come back at
	// MinReadyRecovery, or at MinReady where that is more. An endpoint that is connecting
	// counts once it is READY or has failed.
	MinReady, MinReadyRecovery float64
	// WarmStandby is how many of the priorities below the one in use are connected before
	// they are needed. 0 is A56's behaviour: none.
	WarmStandby int
	// FastFailover says that a priority that has lost its connections, of which it can hold
	// two at least, is not waited for while a lower one is READY. Otherwise it has
	// FailoverTimeout to connect again. With PickFirst a locality holds one.
	FastFailover bool
	// FailbackJitter is the window over which the clients of a fleet spread their way
	// back: each waits for a random part of it beyond FailbackDelay.
	FailbackJitter time.Duration
	// MaxFailbackDelay is what FailbackDelay grows to, doubling, while a priority keeps
	// failing again. 0 lets it stay as it is.
	MaxFailbackDelay time.Duration
	// OutlierDetection takes endpoints whose calls fail out of use for a while, and
	// priorities whose endpoints all do (gRFC A50). It goes before what clusters say of
	// it, and has no effect with PickFirst, which does not notice.
	OutlierDetection bool
	// NoOutlierDetection does none, whatever clusters say of it.
	NoOutlierDetection bool
}

// Check says which of the values of MinReady, MinReadyRecovery, WarmStandby and what is
// about coming back are out of range, and what the range is.
func (s Settings) Check() error {
	if s.WarmStandby < 0 || s.WarmStandby > lbconfig.MostStandbys {
		return fmt.Errorf("warmStandby: %d given, want 0 to %d", s.WarmStandby, lbconfig.MostStandbys)
	}
	return s.choice().CheckChoice()
}

// choice returns the configuration of the top of the tree without its children.
func (s Settings) choice() *lbconfig.Priority {
	top := lbconfig.NewPriority()
	if s.FailoverTimeout > 0 {
		top.FailoverTimeout = lbconfig.Duration(s.FailoverTimeout)
	}
	top.FailbackDelay = lbconfig.Duration(s.FailbackDelay)
	top.FailbackJitter = lbconfig.Duration(s.FailbackJitter)
	top.MaxFailbackDelay = lbconfig.Duration(s.MaxFailbackDelay)
	top.MinReady, top.MinReadyRecovery = s.MinReady, s.MinReadyRecovery
	top.WarmStandby = uint32(max(s.WarmStandby, 0))
	top.FastFailover = s.FastFailover
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
