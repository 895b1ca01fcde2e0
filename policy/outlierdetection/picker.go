package outlierdetection

import (
	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/lb/shell"
)

// picker wraps the picker of a child that doesn't use shell.Counted. Such a child picks the
// subchannels we wrapped, so we count the call here and unwrap them.
type picker struct {
	child  balancer.Picker
	policy *policy
}

func (p *picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	result, err := p.child.Pick(info)
	if err != nil {
		return result, err
	}
	if s, ok := result.SubConn.(*subConn); ok {
		result.SubConn = s.SubConn
		s.addDone(&result)
	}
	return result, nil
}

func (p *picker) Failure() error { return shell.FailureOf(p.child) }

type countingPicker struct {
	subConn *subConn
	above   balancer.Picker // from a parent that also counts calls, or nil
}

func (c *countingPicker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	if c.above != nil {
		result, err := c.above.Pick(info)
		if err == nil {
			c.subConn.addDone(&result)
		}
		return result, err
	}
	return balancer.PickResult{SubConn: c.subConn.SubConn, Done: *c.subConn.done()}, nil
}
