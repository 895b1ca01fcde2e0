package priority

import (
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/core/share"
	"github.com/understudy-lb/understudy/internal/lb/shell"
)

// errShed is a status, and so the one error with which this policy ends calls at once, even those
// that wait for ready: more calls would make what is full fuller. gRPC does not retry it.
var errShed = status.Error(codes.ResourceExhausted, "shed: every priority is full")

// offerPicker offers each call to the READY priorities in order. A call that none of them takes is
// a probe for one whose breaker is open. Otherwise it is refused, unless it may wait.
type offerPicker struct {
	offers  []offer
	awaited bool   // calls may wait for another priority
	shed    func() // counts a refused call; nil in a policy below another one with overflow, which refuses none
}

type offer struct {
	*intake
	picker balancer.Picker
}

// Pick tries the next priority if a picker has no connection. A status is a result: a drop is meant
// for the call, wherever it would go.
func (p *offerPicker) Pick(info balancer.PickInfo) (result balancer.PickResult, err error) {
	for i := range p.offers {
		o := &p.offers[i]
		if taken, untimed := o.take(); taken {
			if result, err = o.pick(info, untimed); isFinal(err) {
				return result, err
			}
		}
	}
	if err != nil {
		return result, err
	}
	allTripped := true
	for _, o := range p.offers {
		taken, tripped := o.probe()
		allTripped = allTripped && tripped
		if taken {
			if result, err = o.pick(info, nil); isFinal(err) {
				return result, err
			}
		}
	}
	switch {
	case allTripped && p.awaited:
		return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
	case p.shed == nil:
		return p.offers[len(p.offers)-1].pick(info, nil)
	}
	p.shed()
	return balancer.PickResult{}, errShed
}

func isFinal(err error) bool {
	if err == nil {
		return true
	}
	_, isStatus := status.FromError(err)
	return isStatus
}

func (o *offer) pick(info balancer.PickInfo, untimed *share.View) (balancer.PickResult, error) {
	result, err := o.picker.Pick(info)
	if err != nil {
		return result, err
	}
	if s, ok := result.SubConn.(*subConn); ok && untimed != nil && result.Done == nil {
		below, d := s.below(), s.shared.Load()
		if d == nil || d.below != below || d.stamp != untimed.Stamp || d.intake != o.intake {
			d = &shared{o.intake, untimed.Stamp, below, o.untimed(untimed.Stamp, *below)}
			s.shared.Store(d)
		}
		result.SubConn, result.Done = s.SubConn, d.done
		return result, nil
	}
	result, endpoint := unwrap(result, info)
	if untimed != nil {
		result.Done = o.untimed(untimed.Stamp, result.Done)
	} else {
		result.Done = o.begin(info, endpoint, result.Done)
	}
	return result, nil
}

// unwrapper is the picker of a child whose share does not matter.
type unwrapper struct{ balancer.Picker }

func (u unwrapper) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	result, err := u.Picker.Pick(info)
	result, _ = unwrap(result, info)
	return result, err
}

func (u unwrapper) Failure() error { return shell.FailureOf(u.Picker) }
