package priority

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/childlb"
	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/lbconfig"
)

// child is a child that exists.
type child struct {
	lb *childlb.Child
	// state is what the child last reported, or that its update was rejected.
	state balancer.State
	// failure is the picker of the last TRANSIENT_FAILURE, nil before the first.
	failure balancer.Picker

	failover, deactivation, failback timer
}

// timer is one timer of a child. A timer that was stopped while it fired is told
// from the one that runs by the value of current.
type timer struct{ current *time.Timer }

// start makes fired run, in an event of the policy, after the given time.
func (t *timer) start(p *policy, after time.Duration, fired func()) {
	var own *time.Timer
	own = time.AfterFunc(after, func() {
		p.serial.Do(func() {
			if t.current == own {
				t.current = nil
				fired()
			}
		})
	})
	t.current = own
}

func (t *timer) stop() {
	t.current.Stop()
	t.current = nil
}

// createChild builds a child, which has no policy before its first update.
func (p *policy) createChild(name string) {
	c := &child{state: childlb.Connecting()}
	parent := childlb.Parent{ClientConn: p.cc, Options: p.opts, Serializer: &p.serial}
	c.lb = childlb.New(parent, func(state balancer.State) {
		c.track(state)
		p.apply(p.core.Reported(name, stateOf(state)))
	}, func() { p.resolveNow(name) })
	p.children[name] = c
}

// track keeps what the child reported.
func (c *child) track(state balancer.State) {
	c.state = state
	if state.ConnectivityState == connectivity.TransientFailure {
		c.failure = state.Picker
	}
}

// updateChild gives a child its configuration and endpoints. An error of it counts
// like a report, after those that the child made from inside the update.
func (p *policy) updateChild(name string) {
	c := p.children[name]
	err := c.lb.Update(p.config.Children[name].Config, childlb.WithEndpoints(p.state, p.groups[name]))
	if err == nil {
		return
	}
	if p.updating { // otherwise there is nobody to return it to
		p.errors.add(name, err)
	}
	p.serial.Enqueue(func() {
		if p.children[name] == c {
			p.rejected(name, c, err)
		}
	})
}

// rejected handles an error from a child's update (row P13).
func (p *policy) rejected(name string, c *child, err error) {
	if errors.Is(err, balancer.ErrBadResolverState) && c.state.ConnectivityState == connectivity.TransientFailure {
		return // the child has said what is wrong, which this error does not
	}
	failed := childlb.Failed(&rejection{child: name, err: err})
	c.failure = failed.Picker
	counts, actions := p.core.Rejected(name)
	if !counts {
		logger.Warningf("priority: child %q rejected its update and stays %v: %v", name, c.state.ConnectivityState, err)
		return
	}
	logger.Warningf("priority: child %q rejected its update and counts as failed: %v", name, err)
	c.state = failed
	p.apply(actions)
}

// lastError returns the last error that the child is known to have had, nil where
// none is. Only a picker knows why a child failed, so it is asked for a pick. An
// error with a status is a call that was dropped, which says nothing about the
// child.
func (c *child) lastError() error {
	if c.failure == nil {
		return nil
	}
	_, err := c.failure.Pick(balancer.PickInfo{Ctx: context.Background()})
	if _, dropped := status.FromError(err); dropped {
		return nil
	}
	return err
}

// reresolution is what becomes of the children's requests for re-resolution. It is
// never modified.
type reresolution struct {
	children   map[string]lbconfig.PriorityChild
	resolveNow func(child string) // nil for the ClientConn's
}

// resolveNow passes a request of a child on. It is called on the child's own stack,
// at any time. Requests of children that are not configured are ignored: an answer
// would have nothing for them.
func (p *policy) resolveNow(name string) {
	r := p.reresolution.Load()
	config, ok := r.children[name]
	switch {
	case !ok || config.IgnoreReresolutionRequests:
	case r.resolveNow != nil:
		r.resolveNow(name)
	default:
		p.cc.ResolveNow(resolver.ResolveNowOptions{})
	}
}

func stateOf(state balancer.State) core.State {
	switch state.ConnectivityState {
	case connectivity.Idle:
		return core.Idle
	case connectivity.Connecting:
		return core.Connecting
	case connectivity.Ready:
		return core.Ready
	}
	return core.TransientFailure
}
