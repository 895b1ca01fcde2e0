package topology

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/config/options"
)

// We can't import the policies here, so we repeat their names.
const (
	outlierDetectionName   = "understudy_outlier_detection"
	dropName               = "understudy_drop"
	weightedTargetName     = "understudy_weighted_target"
	weightedRoundRobinName = "understudy_weighted_round_robin"
	endpointPolicyName     = "understudy_endpoint_policy"
	pickFirstName          = "understudy_pick_first"
)

// We never reuse a child's name, so there's no point in keeping removed children around.
const retention lbconfig.Duration = 0

// If every client started with the first endpoint, the one with the largest weight would get
// everyone's first call.
const startPoint = lbconfig.StartRandom

// Policies generates the configuration of one channel's policies. It's passed to them as a value,
// so nothing has to be encoded or parsed. Not safe for concurrent use.
type Policies struct {
	// CannotEject is set if outlier detection can't work because the endpoint policy puts several
	// endpoints behind one pick_first.
	CannotEject bool

	settings Settings
	leaf     lbconfig.Policy            // used for every locality
	own      *lbconfig.OutlierDetection // used for all priorities; if nil, each cluster has its own
	last     map[string]configuredChild // keyed by name; the next configuration shares whatever hasn't changed
}

type configuredChild struct {
	TreePriority
	policy lbconfig.Policy
}

func NewPolicies(settings Settings) (*Policies, error) {
	leaf, err := settings.leaf()
	if err != nil {
		return nil, err
	}
	bare, found := lbconfig.BarePickFirst(leaf)
	p := &Policies{CannotEject: found, settings: settings, leaf: leaf}
	switch {
	case found && settings.OutlierDetection == options.On && !settings.EndpointPolicy.IsPickFirst():
		return nil, fmt.Errorf("outlierDetection: %s given, which would not notice that an endpoint is ejected; want a policy that has a pick_first of its own for each endpoint", bare)
	case found || settings.OutlierDetection == options.Off:
		p.own = lbconfig.New[lbconfig.OutlierDetection]()
	case settings.OutlierDetection == options.On:
		p.own = forFewEndpoints()
	}
	return p, nil
}

func (p *Policies) config(priorities []TreePriority) *lbconfig.Priority {
	top := lbconfig.New[lbconfig.Priority]()
	options.Copy(top, p.settings)
	top.PerPriority = options.Settings(p.settings).InOneList()
	top.Children = make(map[string]lbconfig.PriorityChild, len(priorities))
	top.Priorities = make([]string, 0, len(priorities))
	top.RemovedChildRetention = retention
	last := p.last
	p.last = make(map[string]configuredChild, len(priorities))
	number := -1 // index of the current child's priority in the source's answer
	for _, c := range priorities {
		if !c.continuesPriority {
			number++
		}
		top.SourcePriorities = append(top.SourcePriorities, number)
		top.Priorities = append(top.Priorities, c.Child)
		known := last[c.Child]
		if known.policy.Name() == "" || known.outlierDetection != c.outlierDetection || !slices.Equal(known.drops, c.drops) || !slices.Equal(known.localities, c.localities) {
			known = configuredChild{c, p.policy(&c)}
		}
		p.last[c.Child] = known
		top.Children[c.Child] = lbconfig.PriorityChild{Config: known.policy, IgnoreReresolutionRequests: c.ignoreReresolution}
	}
	return top
}

// Outlier detection is always in the tree, but only ejects endpoints if it's enabled by the
// settings or, if they don't say, by the cluster.
func (p *Policies) policy(c *TreePriority) lbconfig.Policy {
	localities := &lbconfig.WeightedTarget{Targets: make(map[string]lbconfig.Target, len(c.localities)), StartPoint: startPoint, RemovedChildRetention: retention}
	for _, l := range c.localities {
		localities.Targets[l.name] = lbconfig.Target{Weight: l.weight, ChildPolicy: p.leaf}
	}
	drop := &lbconfig.Drop{DropCategories: c.drops, ChildPolicy: lbconfig.Named(weightedTargetName, localities)}
	outliers := *cmp.Or(p.own, c.outlierDetection, lbconfig.New[lbconfig.OutlierDetection]())
	outliers.ChildPolicy = lbconfig.Named(dropName, drop)
	return lbconfig.Named(outlierDetectionName, &outliers)
}

// The defaults of gRFC A50 only kick in with more endpoints and calls. These settings work even
// with two endpoints and a few calls per second.
func forFewEndpoints() *lbconfig.OutlierDetection {
	config := lbconfig.New[lbconfig.OutlierDetection]()
	config.MaxEjectionPercent = 100
	config.FailurePercentageEjection = lbconfig.New[lbconfig.FailurePercentageEjection]()
	config.FailurePercentageEjection.MinimumHosts = 1
	config.FailurePercentageEjection.RequestVolume = 10
	config.ConsecutiveFailuresEjection = lbconfig.New[lbconfig.ConsecutiveFailuresEjection]()
	return config
}

func (s Settings) leaf() (lbconfig.Policy, error) {
	if !s.EndpointPolicy.IsDefault() {
		name, config := s.EndpointPolicy.Split()
		if s.EndpointPolicy.IsPickFirst() {
			name = pickFirstName
		}
		child, err := lbconfig.ParsePolicy(name, config)
		return lbconfig.Named(endpointPolicyName, &lbconfig.EndpointPolicy{ChildPolicy: child}), err
	}
	config := lbconfig.New[lbconfig.WeightedRoundRobin]()
	config.StartPoint = startPoint
	if s.SlowStart > 0 {
		config.SlowStart = lbconfig.New[lbconfig.SlowStart]()
		config.SlowStart.Window = lbconfig.Duration(s.SlowStart)
	}
	return lbconfig.Named(weightedRoundRobinName, config), nil
}
