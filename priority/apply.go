package priority

import (
	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/childlb"
	core "github.com/understudy-lb/understudy/internal/core/priority"
)

// apply does what the core asks for.
func (p *policy) apply(actions []core.Action) {
	for _, a := range actions {
		c := p.children[a.Child]
		switch a.Kind {
		case core.Create:
			p.createChild(a.Child)
		case core.Update:
			p.updateChild(a.Child)
		case core.Destroy:
			delete(p.children, a.Child)
			c.lb.Close()
		case core.ExitIdle:
			c.lb.ExitIdle()
		case core.Publish:
			p.publish(a.Child, c.state)
		case core.PublishRejected:
			p.publish(a.Child, childlb.Failed(c.rejection))
		case core.PublishTimeout:
			p.publish(a.Child, childlb.Failed(&core.TimeoutError{Child: a.Child, After: a.After, Last: c.lastError}))
		case core.PublishEmpty:
			p.publish("", childlb.Failed(p.emptyError()))
		default:
			p.applyTimer(c, a)
		}
	}
}

func (p *policy) applyTimer(c *child, a core.Action) {
	switch a.Kind {
	case core.StartFailover:
		c.failover.start(p, a.After, func() { p.apply(p.core.FailoverTimerFired(a.Child)) })
	case core.StopFailover:
		c.failover.stop()
	case core.StartDeactivation:
		c.deactivation.start(p, a.After, func() { p.apply(p.core.DeactivationTimerFired(a.Child)) })
	case core.StopDeactivation:
		c.deactivation.stop()
	case core.StartFailback:
		c.failback.start(p, a.After, func() { p.apply(p.core.FailbackTimerFired(a.Child)) })
	case core.StopFailback:
		c.failback.stop()
	}
}

// publish publishes the state of the child, which is the one in use from now on.
func (p *policy) publish(name string, state balancer.State) {
	if p.inUse != name {
		p.recordFailover(p.inUse, name, state.ConnectivityState)
		p.inUse = name
	}
	p.published = state.ConnectivityState
	p.cc.UpdateState(state)
}
