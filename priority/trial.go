package priority

import (
	"errors"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/shell"
)

// trials counts the calls for the trials of one child. It belongs to the child, because a new
// picker must not start a trial.
type trials struct {
	elsewhere atomic.Int64 // calls that the child did not get since its last call or trial, counted while it was on trial
	last      atomic.Int64 // time of that call, in nanoseconds since epoch
	epoch     time.Time
}

func newTrials() *trials { return &trials{epoch: time.Now()} }

// take reports whether a trial is due. If it is, the trial has begun.
func (t *trials) take(interval time.Duration) bool {
	elsewhere := t.elsewhere.Load()
	if elsewhere < core.FewestCalls { // checked first, because reading the clock is expensive
		return false
	}
	now := time.Since(t.epoch)
	if !core.TrialIsDue(elsewhere, now-time.Duration(t.last.Load()), interval) || !t.elsewhere.CompareAndSwap(elsewhere, 0) {
		return false
	}
	t.last.Store(int64(now))
	return true
}

// onTrial is a child that receives trial calls.
type onTrial struct {
	*trials
	picker   balancer.Picker
	interval time.Duration
	waits    atomic.Int64 // counted calls that wait in the current picker
}

// trying is a picker that gives some calls to the children on trial.
type trying struct {
	balancer.Picker
	tried []*onTrial
}

// trying returns state with a picker that gives some calls to the core's children on trial, if
// there are any.
func (p *policy) trying(state balancer.State) balancer.State {
	var tried []*onTrial
	if last, ok := p.published.Picker.(*trying); ok {
		last.forgetWaits()
	}
	for _, name := range p.core.OnTrial() {
		if p.trials[name] == nil {
			p.trials[name] = newTrials()
		}
		picker := p.children[name].State().Picker
		tried = append(tried, &onTrial{trials: p.trials[name], picker: picker, interval: shell.TierOf(picker).Interval})
	}
	if tried != nil {
		state.Picker = &trying{state.Picker, tried}
	}
	return state
}

// Pick picks from a child on trial if a trial is due. Otherwise, or if that child cannot pick, it
// picks from the child in use.
func (t *trying) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	for _, c := range t.tried {
		if !c.take(c.interval) {
			continue
		}
		c.waits.Store(0)
		if result, err := c.picker.Pick(info); err == nil {
			t.elsewhere(c, false)
			return result, nil
		}
	}
	result, err := t.Picker.Pick(info)
	t.elsewhere(nil, errors.Is(err, balancer.ErrNoSubConnAvailable))
	return result, err
}

// elsewhere counts a call for all children on trial except but. waits reports whether the call
// waits.
func (t *trying) elsewhere(but *onTrial, waits bool) {
	for _, c := range t.tried {
		if c == but {
			continue
		}
		c.elsewhere.Add(1)
		if waits {
			c.waits.Add(1)
		}
	}
}

// forgetWaits subtracts the waiting calls. It is called when another picker replaces this one,
// because gRPC picks again for these calls.
func (t *trying) forgetWaits() {
	for _, c := range t.tried {
		c.elsewhere.Add(-c.waits.Swap(0))
	}
}

func (t *trying) Failure() error { return shell.FailureOf(t.Picker) }

func (t *trying) Tier() shell.Tier { return shell.TierOf(t.Picker) }
