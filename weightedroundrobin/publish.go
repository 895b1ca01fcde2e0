package weightedroundrobin

import (
	"fmt"
	"math"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/childlb"
	"github.com/understudy-lb/understudy/internal/weighted"
)

// A picker of many children is made at most once in so much time for each of them,
// however often they report: 10,000 endpoints that come up together cost a picker
// every 10 ms instead of 10,000 pickers of up to 10,000 endpoints. What is waited
// for is only that calls spread to one endpoint more; a call that was given an
// endpoint just lost waits for the next picker.
const pickerInterval = time.Microsecond

// fewChildren is how many children make a picker that costs less than a timer.
const fewChildren = 256

// publication is what the policy needs to know of the states it publishes.
type publication struct {
	published connectivity.State // last
	begun     bool               // whether any was
	stale     bool               // what was published last is not what would be now
	at        time.Time          // when it was
	picker    *weighted.Picker   // in use, if a child is READY
	growing   bool               // a READY child is in its slow-start window

	timer   *time.Timer
	timerAt time.Time
}

// flush publishes the policy's state after a batch of events, if it is a new one,
// or sees to it that it is published later.
func (p *policy) flush() {
	if p.closed || p.updating {
		return
	}
	if !p.begun && len(p.order) == 0 && !p.stale {
		return // the first update is yet to come
	}
	now := time.Now()
	if !p.begun || p.published != p.aggregate() {
		p.publish(now)
		return
	}
	due := p.due()
	switch {
	case due.IsZero():
	case due.After(now):
		p.wake(due)
	default:
		p.publish(now)
	}
}

// due returns when the policy is to publish the same state with another picker;
// zero if it need not.
func (p *policy) due() time.Time {
	var interval time.Duration
	if n := p.count[connectivity.Ready]; n > fewChildren {
		interval = time.Duration(n) * pickerInterval
	}
	switch {
	case p.stale:
		return p.at.Add(interval)
	case p.growing:
		return p.at.Add(max(interval, slowStartStep(p.config.SlowStart)))
	}
	return time.Time{}
}

// wake makes flush run at the given time.
func (p *policy) wake(at time.Time) {
	if p.timer != nil && !at.Before(p.timerAt) {
		return
	}
	p.stopTimer()
	p.timerAt = at
	var timer *time.Timer
	timer = time.AfterFunc(time.Until(at), func() {
		p.serializer.Do(func() {
			if p.timer == timer {
				p.timer = nil
			}
		})
	})
	p.timer = timer
}

func (p *policy) stopTimer() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// aggregate returns the policy's state, as round_robin does.
func (p *policy) aggregate() connectivity.State {
	for _, state := range []connectivity.State{connectivity.Ready, connectivity.Connecting, connectivity.Idle} {
		if p.count[state] > 0 {
			return state
		}
	}
	return connectivity.TransientFailure
}

// publish publishes the policy's state.
func (p *policy) publish(now time.Time) {
	if p.picker != nil {
		p.picker.Save()
		p.picker = nil
	}
	p.published, p.begun, p.stale, p.growing, p.at = p.aggregate(), true, false, false, now
	var state balancer.State
	switch p.published {
	case connectivity.Ready:
		p.picker = p.newPicker(now)
		state.Picker = p.picker
	case connectivity.TransientFailure:
		state.Picker = p.failure().Picker
	default:
		// Calls wait, also while the children are IDLE: they have been asked to
		// connect.
		state = childlb.Connecting()
	}
	state.ConnectivityState = p.published
	p.cc.UpdateState(state)
	if due := p.due(); !due.IsZero() {
		p.wake(due)
	}
}

// failure returns a state whose calls fail with what the child that failed last says,
// and with how many did, or with what there is to say without children.
func (p *policy) failure() balancer.State {
	if len(p.order) == 0 {
		return childlb.Failed(p.err)
	}
	last := p.lastFailure()
	if err := childlb.FailureOf(last.Picker); err != nil && len(p.order) > 1 {
		return childlb.Failed(fmt.Errorf("all %d endpoints failed, the last with: %w", len(p.order), err))
	}
	return last
}

func (p *policy) lastFailure() balancer.State {
	if c := p.lastFailed; c != nil && c.state.ConnectivityState == connectivity.TransientFailure {
		return c.state
	}
	return p.order[0].state // all of them have failed
}

// newPicker returns a picker of the READY children, of which there are some.
func (p *policy) newPicker(now time.Time) *weighted.Picker {
	n := p.count[connectivity.Ready]
	children := make([]*child, 0, n)
	pickers := make([]balancer.Picker, 0, n)
	places := make([]*weighted.Place, 0, n)
	weights := make([]uint32, 0, n)
	for _, c := range p.order {
		if c.state.ConnectivityState == connectivity.Ready {
			children = append(children, c)
			pickers = append(pickers, c.state.Picker)
			places = append(places, &c.place)
			weights = append(weights, c.weight)
		}
	}
	if n > 1 {
		p.slowStart(now, children, weights)
	}
	return weighted.New(pickers, weights, places)
}

// slowStart lessens the weights of the children that are in their window.
func (p *policy) slowStart(now time.Time, children []*child, weights []uint32) {
	s := p.config.SlowStart
	if s == nil {
		return
	}
	for _, c := range children {
		p.growing = p.growing || slowStartFactor(s, now.Sub(c.readySince)) < 1
	}
	if !p.growing {
		return
	}
	scale := min(slowStartScale, uint32(math.MaxUint32/p.sum))
	for i, c := range children {
		weights[i] = slowStartWeight(c.weight, scale, slowStartFactor(s, now.Sub(c.readySince)))
	}
}
