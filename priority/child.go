package priority

import (
	"errors"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/childlb"
	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/lbconfig"
)

// child is a child that exists.
type child struct {
	lb *childlb.Child
	// state is what the child last reported, CONNECTING before that.
	state balancer.State
	// rejection is the error of the child's last update where it counts, else nil.
	rejection error
	// lastError is the last error that the child is known to have had, nil where none
	// is.
	lastError error

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
	c.state, c.rejection = state, nil
	if state.ConnectivityState != connectivity.TransientFailure {
		return
	}
	if c.lastError = childlb.FailureOf(state.Picker); c.lastError == nil {
		c.lastError = errUntold
	}
}

// errUntold stands for the error of a child that is not of this module.
var errUntold = errors.New("TRANSIENT_FAILURE, with an error that only its picker knows")

// updateChild gives a child its configuration and endpoints, and lets the core know
// what it made of them (A56 runs child.Update() and then reads the child's state): first
// what it reported, then the error that it returned.
func (p *policy) updateChild(name string) {
	c := p.children[name]
	c.rejection = nil // of an update before this one
	err := c.lb.Update(p.config.Children[name].Config, childlb.WithEndpoints(p.state, p.groups[name]))
	if err != nil {
		p.rejected(name, c, err)
	}
	p.apply(p.core.Updated(name))
}

// rejected handles an error from a child's update (row P13).
func (p *policy) rejected(name string, c *child, err error) {
	if p.updating { // otherwise there is nobody to return it to
		p.errors.add(name, err)
	}
	if errors.Is(err, balancer.ErrBadResolverState) && c.state.ConnectivityState == connectivity.TransientFailure {
		return // the child has said what is wrong, which this error does not
	}
	rejection := &rejection{child: name, err: err}
	c.lastError = rejection
	counts, actions := p.core.Rejected(name)
	if !counts {
		logger.Warningf("priority: child %q rejected its update and stays %v: %v", name, c.state.ConnectivityState, err)
		return
	}
	logger.Warningf("priority: child %q rejected its update and counts as failed: %v", name, err)
	c.rejection = rejection
	p.apply(actions)
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
