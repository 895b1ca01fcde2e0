package priority

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/shell"
	"github.com/understudy-lb/understudy/internal/stateattr"
)

const (
	failover = iota
	deactivation
	failback
	steady
	spareTimer
	headStart
)

func (p *policy) event(child string, actions []core.Action) {
	p.note(child)
	p.noteOutage()
	p.noteSpare(child)
	p.apply(actions)
	if e, ok := p.published.Picker.(*exhausted); ok {
		p.explain(e)
	}
}

func (p *policy) apply(actions []core.Action) {
	for _, a := range actions {
		c := p.children[a.Child]
		switch a.Kind {
		case core.Create:
			p.children[a.Child] = p.newChild(a.Child)
			p.beginSpare(a.Child)
		case core.Update:
			// As in A56, the core looks at the child's state after the child's update.
			p.updateChild(a.Child)
			p.event(a.Child, p.core.Updated(a.Child))
		case core.MakeStandby:
			p.Event(func() { p.apply(p.core.StandbyDue()) }) // in an event of its own, so that the state of this batch is published first
		case core.Destroy:
			delete(p.children, a.Child)
			delete(p.trials, a.Child)
			p.note(a.Child)
			c.Close()
		case core.ExitIdle:
			c.ExitIdle()
		case core.Publish:
			p.use(a.Child, p.explained(a.Child, c.State()))
		case core.PublishRefused:
			p.use(a.Child, p.explained(a.Child, shell.Failed(c.LastError())))
		case core.PublishTimeout:
			p.use(a.Child, shell.Failed(&core.TimeoutError{Child: a.Child, After: a.After, Last: c.LastError()}))
		case core.PublishEmpty:
			p.use("", shell.Failed(p.emptyError()))
		default:
			p.applyTimer(c, a)
		}
	}
}

// explained returns state. If the child has failed and the source knows the reason, the source's
// error replaces the child's.
func (p *policy) explained(child string, state balancer.State) balancer.State {
	if why := stateattr.ChannelOf(p.state).Failures[child]; why != "" && state.ConnectivityState == connectivity.TransientFailure {
		return shell.Failed(errors.New(why))
	}
	return state
}

func (p *policy) applyTimer(c *shell.Child, a core.Action) {
	switch a.Kind {
	case core.StartFailover:
		c.StartTimer(failover, a.After, func() { p.event(a.Child, p.core.FailoverTimerFired(a.Child)) })
	case core.StopFailover:
		c.StopTimer(failover)
	case core.StartDeactivation:
		c.StartTimer(deactivation, a.After, func() { p.apply(p.core.DeactivationTimerFired(a.Child)) })
	case core.StopDeactivation:
		c.StopTimer(deactivation)
	case core.StartFailback:
		after := a.After + time.Duration(p.random()*float64(a.Jitter))
		p.delay(a.Child, after)
		c.StartTimer(failback, after, func() { p.apply(p.core.FailbackTimerFired(a.Child)) })
	case core.StopFailback:
		p.delay(a.Child, 0)
		c.StopTimer(failback)
	case core.StartSteady:
		c.StartTimer(steady, a.After, func() { p.apply(p.core.SteadyTimerFired(a.Child)) })
	case core.StopSteady:
		c.StopTimer(steady)
	case core.StartHeadStart:
		c.StartTimer(headStart, a.After, func() { p.apply(p.core.HeadStartTimerFired(a.Child)) })
	case core.StopHeadStart:
		c.StopTimer(headStart)
	}
}

func (p *policy) use(name string, state balancer.State) {
	if state.ConnectivityState == connectivity.TransientFailure && name != "" {
		state = p.exhausted(name, state)
	}
	if p.chosen != name && p.children[p.chosen] != nil {
		p.trials[p.chosen] = newTrials()
		p.letGoLater(p.chosen)
	}
	p.needAll(name)
	p.chosen, p.published = name, p.trying(state)
	p.Publish()
}

// emptyError is the error of calls while there are no priorities. It contains the source's reason,
// if there is one.
func (p *policy) emptyError() error {
	if why := stateattr.ChannelOf(p.state).Empty; why != "" {
		return fmt.Errorf("%w: %s", core.ErrEmpty, why)
	}
	return core.ErrEmpty
}
