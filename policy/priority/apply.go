package priority

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

const (
	failoverTimer = iota
	deactivationTimer
	limitTimer
	lostTimer
	shareTimer
	backoffTimer
	outageTimer
)

func (p *policy) handle(child string, actions []core.Action) {
	p.updateStatus(child)
	p.limitBackoffs()
	p.removeLimitAfterFailure(child)
	p.apply(actions)
	if e, ok := p.published.Picker.(*exhaustedPicker); ok {
		p.updateReasons(e)
	}
	p.settle()
}

func (p *policy) apply(actions []core.Action) {
	for _, a := range actions {
		c := p.children[a.Child]
		switch a.Kind {
		case core.Create:
			p.children[a.Child] = p.newChild(a.Child)
			p.limitStandby(a.Child)
		case core.Update:
			p.updateChild(a.Child)
			p.handle(a.Child, p.core.Updated(a.Child))
		case core.CallStandbyDue:
			p.Event(func() { p.apply(p.core.StandbyDue()) })
		case core.Destroy:
			delete(p.children, a.Child)
			delete(p.shares.children, a.Child)
			p.updateStatus(a.Child)
			c.Close()
		case core.ExitIdle:
			c.ExitIdle()
		case core.Publish:
			p.setPublished(a.Child, p.withSourceError(a.Child, c.State()))
		case core.PublishRefused:
			p.setPublished(a.Child, p.withSourceError(a.Child, shell.Failed(c.LastError())))
		case core.PublishTimeout:
			p.setPublished(a.Child, shell.Failed(&core.TimeoutError{Child: a.Child, After: a.After, Last: c.LastError()}))
		case core.PublishEmpty:
			p.setPublished("", shell.Failed(p.emptyError()))
		case core.StartFailover:
			c.StartTimer(failoverTimer, a.After, func() { p.handle(a.Child, p.core.FailoverTimerFired(a.Child)) })
		case core.StopFailover:
			c.StopTimer(failoverTimer)
		case core.StartDeactivation:
			c.StartTimer(deactivationTimer, a.After, func() {
				p.apply(p.core.DeactivationTimerFired(a.Child))
				p.settle()
			})
		case core.StopDeactivation:
			c.StopTimer(deactivationTimer)
		}
	}
}

func (p *policy) withSourceError(child string, state balancer.State) balancer.State {
	// All the child knows is that it has no endpoints. If the source knows why, show that instead.
	if message := stateattr.ChannelOf(p.state).Failures[child]; message != "" && state.ConnectivityState == connectivity.TransientFailure {
		return shell.Failed(errors.New(message))
	}
	return state
}

func (p *policy) setPublished(name string, state balancer.State) {
	if state.ConnectivityState == connectivity.TransientFailure && name != "" {
		e := &exhaustedPicker{child: state.Picker, inUse: p.title(name)}
		p.updateReasons(e)
		state.Picker = e
	}
	if p.chosen != name && p.children[p.chosen] != nil {
		p.scheduleLimit(p.chosen)
	}
	p.removeLimit(name)
	p.chosen, p.published = name, state
	p.Publish()
}

func (p *policy) emptyError() error {
	if message := stateattr.ChannelOf(p.state).Empty; message != "" {
		return fmt.Errorf("%w: %s", core.ErrEmpty, message)
	}
	return core.ErrEmpty
}
