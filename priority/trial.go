package priority

import (
	"errors"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/shell"
)

// trials decides when a child gets a trial: a call that shows whether the child has recovered. The
// counters belong to the child and not to a picker. Otherwise, each new picker would cause a trial.
type trials struct {
	elsewhere atomic.Int64 // calls to other children since the child's last call or trial
	last      atomic.Int64 // time of the last call or trial, in nanoseconds since epoch
	epoch     time.Time
}

func newTrials() *trials { return &trials{epoch: time.Now()} }

// take reports whether a trial is due, and resets the counter if so.
func (t *trials) take(interval time.Duration) bool {
	elsewhere := t.elsewhere.Load()
	if elsewhere < core.FewestCalls { // checked first, because reading the clock takes longer
		return false
	}
	now := time.Since(t.epoch)
	if !core.TrialIsDue(elsewhere, now-time.Duration(t.last.Load()), interval) || !t.elsewhere.CompareAndSwap(elsewhere, 0) {
		return false
	}
	t.last.Store(int64(now))
	return true
}

type onTrial struct {
	*trials
	picker   balancer.Picker
	interval time.Duration
	waits    atomic.Int64 // how many of the calls counted in elsewhere are still waiting
}

// trying is the picker of the child in use. It gives a few calls to children on trial.
type trying struct {
	balancer.Picker
	tried []*onTrial
}

// trying adds trials to the picker of state if there are children on trial.
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

// Pick uses a child on trial if a trial is due and that child can pick. Otherwise the child in use
// picks.
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

// elsewhere counts a call for each child on trial, except for the child but. waits means that the
// call is waiting.
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

// forgetWaits subtracts the waiting calls from the counts when this picker is replaced. gRPC then
// passes these calls to the next picker, which counts them again.
func (t *trying) forgetWaits() {
	for _, c := range t.tried {
		c.elsewhere.Add(-c.waits.Swap(0))
	}
}

func (t *trying) Failure() error { return shell.FailureOf(t.Picker) }

func (t *trying) Tier() shell.Tier { return shell.TierOf(t.Picker) }
