package priority

import (
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/core/share"
	"github.com/understudy-lb/understudy/internal/lb/shell"
)

// errShed is the only error of ours that ends calls at once, even those that wait for ready, since
// more calls would only make things worse. gRPC doesn't retry it.
var errShed = status.Error(codes.ResourceExhausted, "shed: every priority is full")

// offerPicker offers each call to the READY priorities in order. Say p0 is full and down to a share
// of 0.7, p1 is at 0.5, and p2 is broken:
//
//	70 %  p0 takes the call
//	15 %  p1 does, which is half of what p0 has left
//	15 %  none does: it is a probe of p2 if one is due, or else we refuse it
//
// If all of them are broken and another priority may still connect, the call waits for that.
type offerPicker struct {
	offers  []offer
	awaited bool   // there's another priority that calls may wait for
	shed    func() // counts a refused call; nil if another priority policy with overflow is above, as we then refuse nothing
}

type offer struct {
	*childShare
	picker balancer.Picker
}

// Pick tries the next priority if a picker has no connection. A status is final, though: if a call
// is dropped, it would be dropped anywhere else too.
func (p *offerPicker) Pick(info balancer.PickInfo) (result balancer.PickResult, err error) {
	for i := range p.offers {
		r, taken, e := p.offers[i].offer(&info)
		if !taken {
			continue
		}
		if result, err = r, e; isFinal(e) {
			return r, e
		}
	}
	if err != nil {
		return result, err
	}
	return p.leave(info)
}

func (p *offerPicker) leave(info balancer.PickInfo) (result balancer.PickResult, err error) {
	sent, waits := share.Leftover(len(p.offers), p.awaited, func(i int) (sent, tripped bool) {
		taken, tripped := p.offers[i].probe()
		if taken {
			result, err = p.offers[i].pickTimed(info)
		}
		return taken && isFinal(err), tripped
	})
	switch {
	case sent:
		return result, err
	case waits:
		return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
	case p.shed == nil:
		return p.offers[len(p.offers)-1].pickTimed(info)
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

func (o *offer) offer(info *balancer.PickInfo) (result balancer.PickResult, taken bool, err error) {
	// While the priority takes every call, we time only a few of them. To choose which, each
	// subchannel counts its own calls, since a counter shared by all cores would cause contention.
	v := o.view.Load()
	if !v.Free || v.Every == 1 {
		return o.offerTimed(*info)
	}
	if result, err = o.picker.Pick(*info); err != nil {
		return result, true, err
	}
	if s, ok := result.SubConn.(*subConn); ok && !s.isTimed(v.Every) {
		if result.Done == nil { // Nearly always. We do this inline because the function call costs 1.5 ns.
			result.SubConn, result.Done = s.SubConn, s.untimed(o.childShare, v)
			return result, true, nil
		}
		return o.beginUntimed(s, result, v), true, nil
	}
	return o.offerPicked(*info, result)
}

func (o *offer) offerTimed(info balancer.PickInfo) (result balancer.PickResult, taken bool, err error) {
	if taken = o.take(); taken {
		result, err = o.pickTimed(info)
	}
	return result, taken, err
}

func (o *offer) offerPicked(info balancer.PickInfo, picked balancer.PickResult) (result balancer.PickResult, taken bool, err error) {
	result = o.begin(info, picked, true)
	if taken = result.Done != nil; !taken && picked.Done != nil {
		picked.Done(balancer.DoneInfo{}) // gRPC does the same for a call that it doesn't begin
	}
	return result, taken, nil
}

func (o *offer) pickTimed(info balancer.PickInfo) (balancer.PickResult, error) {
	result, err := o.picker.Pick(info)
	if err != nil {
		return result, err
	}
	return o.begin(info, result, false), nil
}

func (o *offer) begin(info balancer.PickInfo, result balancer.PickResult, offered bool) balancer.PickResult {
	result, s := unwrap(result)
	var endpoint *share.Endpoint
	if s != nil {
		endpoint = s.endpointIn(o.childShare)
	}
	result.Done = o.childShare.begin(info, endpoint, result.Done, offered)
	return result
}

func (o *offer) beginUntimed(s *subConn, result balancer.PickResult, v *share.View) balancer.PickResult {
	result.SubConn, result.Done = s.SubConn, shell.Then(s.untimed(o.childShare, v), result.Done)
	return result
}

type unwrapper struct{ balancer.Picker }

func (u unwrapper) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	result, err := u.Picker.Pick(info)
	result, _ = unwrap(result)
	return result, err
}

func (u unwrapper) Failure() error { return shell.FailureOf(u.Picker) }
