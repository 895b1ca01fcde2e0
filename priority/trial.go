package priority

import (
	"errors"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/shell"
)

// trials counts the calls of one child's trials. It belongs to the child and not to its picker:
// a new picker is no reason for a trial.
type trials struct {
	elsewhere atomic.Int64 // calls since its last call or trial, while it was on trial
	last      atomic.Int64 // when that was, in nanoseconds since epoch
	epoch     time.Time
}

// newTrials returns the trials of a child that has had its last call now.
func newTrials() *trials { return &trials{epoch: time.Now()} }

// take returns whether a trial is due, and has begun.
func (t *trials) take(interval time.Duration) bool {
	elsewhere := t.elsewhere.Load()
	if elsewhere < core.FewestCalls { // before the clock is read, which costs more than all else here
		return false
	}
	now := time.Since(t.epoch)
	if !core.TrialIsDue(elsewhere, now-time.Duration(t.last.Load()), interval) || !t.elsewhere.CompareAndSwap(elsewhere, 0) {
		return false
	}
	t.last.Store(int64(now))
	return true
}

// onTrial is a child that gets a few of the calls.
type onTrial struct {
	*trials
	picker   balancer.Picker
	interval time.Duration
	waits    atomic.Int64 // calls counted that the picker lets wait
}

// trying is a picker that gives a call now and then to each of the children on trial.
type trying struct {
	balancer.Picker
	tried []*onTrial
}

// trying returns state with a picker that gives a call now and then to the children that the core
// wants tried.
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

// Pick lets the picker of the child in use pick, or one that is tried. Where that has nothing to
// pick, the call is not to suffer from it.
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

// elsewhere counts a call that goes to no child on trial but one, or waits.
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

// forgetWaits is for when another picker takes the place of this one: it is asked again for the
// calls that wait.
func (t *trying) forgetWaits() {
	for _, c := range t.tried {
		c.elsewhere.Add(-c.waits.Swap(0))
	}
}

// Failure returns what the picker of the child in use fails with; see shell.FailureOf.
func (t *trying) Failure() error { return shell.FailureOf(t.Picker) }

// Tier returns what the child in use says of its endpoints; see shell.TierOf.
func (t *trying) Tier() shell.Tier { return shell.TierOf(t.Picker) }
