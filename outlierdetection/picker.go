package outlierdetection

import (
	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/shell"
)

// picker puts gRPC's own subchannels into the picks of a child that does not know ours,
// and has the calls counted.
type picker struct {
	child  balancer.Picker
	policy *policy
}

// Pick lets the child's picker pick.
func (p *picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	result, err := p.child.Pick(info)
	if err != nil {
		return result, err
	}
	if s, ok := result.SubConn.(*subConn); ok {
		result.SubConn = s.SubConn
		if p.policy.rules.Load() != nil {
			result.Done = both(s.counting(), result.Done)
		}
	}
	return result, nil
}

// Tier returns what the child says of its endpoints; see shell.TierOf.
func (p *picker) Tier() shell.Tier { return shell.TierOf(p.child) }

// Failure returns what the child's picker fails with; see shell.FailureOf.
func (p *picker) Failure() error { return shell.FailureOf(p.child) }

// reporting is a picker that says something of its tier.
type reporting struct {
	balancer.Picker
	tier shell.Tier
}

// Tier is described at shell.TierOf.
func (r *reporting) Tier() shell.Tier {
	tier := r.tier
	tier.ReadyPart = shell.TierOf(r.Picker).ReadyPart
	return tier
}

// Failure returns what the child's picker fails with; see shell.FailureOf.
func (r *reporting) Failure() error { return shell.FailureOf(r.Picker) }
