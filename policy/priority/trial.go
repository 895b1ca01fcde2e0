package priority

import (
	"errors"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/lb/shell"
)

// trials decides when a child gets a trial, which is a call that shows whether the child has
// recovered. The counters belong to the child and not to a picker, because otherwise each new
// picker would cause a trial.
type trials struct {
	otherCalls atomic.Int64 // calls to other children since the child's last call or trial
	last       atomic.Int64 // time of the last call or trial, in nanoseconds since epoch
	epoch      time.Time
}

func newTrials() *trials { return &trials{epoch: time.Now()} }

// take reports whether a trial is due. If so, it resets the counters.
func (t *trials) take(interval time.Duration) bool {
	otherCalls := t.otherCalls.Load()
	if otherCalls < core.FewestCalls { // checked first, because reading the clock takes longer
		return false
	}
	now := time.Since(t.epoch)
	if !core.TrialIsDue(otherCalls, now-time.Duration(t.last.Load()), interval) || !t.otherCalls.CompareAndSwap(otherCalls, 0) {
		return false
	}
	t.last.Store(int64(now))
	return true
}

type trialChild struct {
	*trials
	picker   balancer.Picker
	interval time.Duration
	waiting  atomic.Int64 // number of calls counted in otherCalls that are still waiting
}

// trialPicker is the picker of the child in use. It sends a few calls to the children on trial.
type trialPicker struct {
	balancer.Picker
	children []*trialChild
}

// withTrials returns state. If there are children on trial, it replaces the picker by one that
// makes trials.
func (p *policy) withTrials(state balancer.State) balancer.State {
	var candidates []*trialChild
	if previous, ok := p.published.Picker.(*trialPicker); ok {
		previous.uncountWaiting()
	}
	for _, name := range p.core.OnTrial() {
		if p.trials[name] == nil {
			p.trials[name] = newTrials()
		}
		picker := p.children[name].State().Picker
		candidates = append(candidates, &trialChild{trials: p.trials[name], picker: picker, interval: shell.TierOf(picker).Interval})
	}
	if candidates != nil {
		state.Picker = &trialPicker{state.Picker, candidates}
	}
	return state
}

// Pick uses the picker of a child on trial if a trial is due and this picker returns no error.
// Otherwise, it uses the picker of the child in use.
func (t *trialPicker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	for _, c := range t.children {
		if !c.take(c.interval) {
			continue
		}
		c.waiting.Store(0)
		if result, err := c.picker.Pick(info); err == nil {
			t.countCall(c, false)
			return result, nil
		}
	}
	result, err := t.Picker.Pick(info)
	t.countCall(nil, errors.Is(err, balancer.ErrNoSubConnAvailable))
	return result, err
}

// countCall counts a call for each child on trial, except for the child that got the call. waiting
// is true if the call must wait.
func (t *trialPicker) countCall(except *trialChild, waiting bool) {
	for _, c := range t.children {
		if c == except {
			continue
		}
		c.otherCalls.Add(1)
		if waiting {
			c.waiting.Add(1)
		}
	}
}

// uncountWaiting subtracts the waiting calls from the counts when this picker is replaced, because
// gRPC passes these calls to the next picker, which counts them again.
func (t *trialPicker) uncountWaiting() {
	for _, c := range t.children {
		c.otherCalls.Add(-c.waiting.Swap(0))
	}
}

func (t *trialPicker) Failure() error { return shell.FailureOf(t.Picker) }

func (t *trialPicker) Tier() shell.Tier { return shell.TierOf(t.Picker) }
