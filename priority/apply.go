package priority

import (
	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/childlb"
	"github.com/understudy-lb/understudy/internal/failover"
)

// apply does what the core asks for.
func (p *policy) apply(actions []failover.Action) {
	for _, a := range actions {
		c := p.children[a.Child]
		switch a.Kind {
		case failover.Create:
			p.createChild(a.Child)
		case failover.Update:
			p.updateChild(a.Child)
		case failover.Destroy:
			delete(p.children, a.Child)
			c.lb.Close()
		case failover.ExitIdle:
			c.lb.ExitIdle()
		case failover.Publish:
			p.publish(a.Child, c.state)
		case failover.PublishTimeout:
			p.publish(a.Child, childlb.Failed(&failover.TimeoutError{Child: a.Child, After: a.After, Last: c.lastError()}))
		case failover.PublishEmpty:
			p.publish("", childlb.Failed(failover.ErrEmpty))
		default:
			p.applyTimer(c, a)
		}
	}
}

func (p *policy) applyTimer(c *child, a failover.Action) {
	switch a.Kind {
	case failover.StartFailover:
		c.failover.start(p, a.After, func() { p.apply(p.core.FailoverTimerFired(a.Child)) })
	case failover.StopFailover:
		c.failover.stop()
	case failover.StartDeactivation:
		c.deactivation.start(p, a.After, func() { p.apply(p.core.DeactivationTimerFired(a.Child)) })
	case failover.StopDeactivation:
		c.deactivation.stop()
	case failover.StartFailback:
		c.failback.start(p, a.After, func() { p.apply(p.core.FailbackTimerFired(a.Child)) })
	case failover.StopFailback:
		c.failback.stop()
	}
}

// publish publishes the state of the child, which is the one in use from now on.
func (p *policy) publish(name string, state balancer.State) {
	if p.inUse != name {
		p.recordFailover(p.inUse, name, state.ConnectivityState)
		p.inUse = name
	}
	p.cc.UpdateState(state)
}
