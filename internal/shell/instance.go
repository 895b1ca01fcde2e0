package shell

import (
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

// OwnsSubConns is implemented by the builders of policies whose Close shuts down all their
// subchannels, as gRPC recommends. For other policies, the Instance shuts them down.
type OwnsSubConns interface{ OwnsSubConns() }

// Owner handles the reports and requests of an Instance.
type Owner interface {
	Reported(i *Instance, state balancer.State)
	// ResolveNow is called on the policy's stack when the policy requests a re-resolution.
	ResolveNow()
}

// Instance is a child policy together with its ClientConn. There may be tens of thousands of
// Instances, so each is small. Its exported methods must be called in events, except those of
// balancer.ClientConn. If the policy may change its type, use Child.
type Instance struct {
	balancer.ClientConn

	shell *Shell
	owner Owner
	lb    balancer.Balancer // nil after Close
	state balancer.State
	since int64 // when the connectivity state last changed, in Unix nanoseconds, or 0
	past  *past

	mu       sync.Mutex
	remember bool // record subchannels, because Close of the policy may leave some open
	closed   bool
	said     *report
	last     *report
	subConns map[balancer.SubConn]struct{}
}

type report struct {
	state balancer.State
	next  *report
}

// reports holds used reports for reuse: 10,000 endpoints that connect send 30,000 reports.
var reports = sync.Pool{New: func() any { return new(report) }}

// Build builds the policy. It returns false if the builder has returned nil.
func (i *Instance) Build(s *Shell, builder balancer.Builder, owner Owner) bool {
	_, owns := builder.(OwnsSubConns)
	i.ClientConn, i.shell, i.owner = s.ClientConn, s, owner
	i.state, i.remember = Connecting(), !owns
	i.lb = builder.Build(i, s.Options)
	return i.lb != nil
}

// State returns the last reported state, or CONNECTING before the first report.
func (i *Instance) State() balancer.State { return i.state }

// Update updates the policy and returns the policy's error. An error that makes the child count as
// failed (see Shell.Refused) is handled like a report of TRANSIENT_FAILURE. name is the child's
// name in errors and logs.
func (i *Instance) Update(name string, config serviceconfig.LoadBalancingConfig, state resolver.State) error {
	err := i.update(config, state)
	if err == nil {
		return nil
	}
	if refusal, counts := i.shell.Refused(fmt.Sprintf("child %q", name), i.state.ConnectivityState, err); counts {
		i.state = Failed(refusal)
		i.owner.Reported(i, i.state)
	}
	return err
}

// update updates the policy. It returns the error without a status (see Plain). When it returns,
// all reports from before and during the update have been handled, because A56 looks at the child's
// state directly after child.Update().
func (i *Instance) update(config serviceconfig.LoadBalancingConfig, state resolver.State) error {
	i.takeAll()
	err := i.lb.UpdateClientConnState(balancer.ClientConnState{ResolverState: state, BalancerConfig: config})
	i.takeAll()
	return Plain(err)
}

// UpdateState queues a report. It cannot handle the report at once, because the policy may hold
// locks.
func (i *Instance) UpdateState(state balancer.State) {
	i.say(state)
	i.shell.serial.Queue((*taking)(i))
}

func (i *Instance) say(state balancer.State) {
	r := reports.Get().(*report)
	r.state = state
	i.mu.Lock()
	if i.said == nil {
		i.said = r
	} else {
		i.last.next = r
	}
	i.last = r
	i.mu.Unlock()
}

// taking is the event that handles one report. It has no effect if an update has already handled
// the report.
type taking Instance

func (t *taking) Run() { (*Instance)(t).take() }

// take handles the oldest queued report. It returns false if there is none, or if the policy is
// closed.
func (i *Instance) take() bool {
	i.mu.Lock()
	r, closed := i.said, i.closed
	if r != nil {
		i.said = r.next
	}
	i.mu.Unlock()
	if r == nil {
		return false
	}
	state := r.state
	*r = report{}
	reports.Put(r)
	if closed {
		return false
	}
	noteSince(&i.since, i.state.ConnectivityState, state.ConnectivityState)
	notePast(&i.past, state)
	i.state = state
	i.owner.Reported(i, state)
	return true
}

func (i *Instance) takeAll() {
	for i.take() {
	}
}

// ResolveNow implements balancer.ClientConn.
func (i *Instance) ResolveNow(resolver.ResolveNowOptions) {
	if !i.isClosed() {
		i.owner.ResolveNow()
	}
}

var errClosed = errors.New("a closed policy called NewSubConn")

// NewSubConn implements balancer.ClientConn. It records the subchannel if the policy may leave it
// open.
func (i *Instance) NewSubConn(addresses []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	if i.isClosed() {
		return nil, errClosed
	}
	if !i.remember {
		return i.ClientConn.NewSubConn(addresses, opts)
	}
	var sc balancer.SubConn
	listener := opts.StateListener
	opts.StateListener = func(state balancer.SubConnState) { i.subConnReported(sc, state, listener) }
	sc, err := i.ClientConn.NewSubConn(addresses, opts)
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		sc.Shutdown()
		return nil, errClosed
	}
	if i.subConns == nil {
		i.subConns = make(map[balancer.SubConn]struct{})
	}
	i.subConns[sc] = struct{}{}
	return sc, nil
}

func (i *Instance) subConnReported(sc balancer.SubConn, state balancer.SubConnState, listener func(balancer.SubConnState)) {
	i.mu.Lock()
	_, known := i.subConns[sc]
	if state.ConnectivityState == connectivity.Shutdown {
		delete(i.subConns, sc)
	}
	i.mu.Unlock()
	switch {
	case !known:
	case listener != nil:
		listener(state)
	default:
		i.lb.UpdateSubConnState(sc, state)
	}
}

func (i *Instance) isClosed() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.closed
}

// ResolverError passes an error of the resolver to the policy.
func (i *Instance) ResolverError(err error) { i.lb.ResolverError(err) }

// ExitIdle makes the policy connect.
func (i *Instance) ExitIdle() { i.lb.ExitIdle() }

// ResetBackoff implements BackoffResetter. It has no effect on policies that do not implement
// BackoffResetter, such as those of other modules.
func (i *Instance) ResetBackoff() {
	if r, ok := i.lb.(BackoffResetter); ok {
		r.ResetBackoff()
	}
}

// Connect makes the policy connect, and handles the reports that the policy sends during the call.
// If one of them is CONNECTING, the parent need not publish IDLE first.
func (i *Instance) Connect() {
	i.lb.ExitIdle()
	i.takeAll()
}

// Remove makes the parent ignore further reports, and closes the policy after the parent has
// published its next state. Until then, calls still use the policy's subchannels.
func (i *Instance) Remove() {
	i.mu.Lock()
	i.closed = true
	i.mu.Unlock()
	i.shell.removed = append(i.shell.removed, i)
}

// Close closes the policy, and shuts down subchannels that it has left open. i may be nil.
func (i *Instance) Close() {
	if i == nil {
		return
	}
	i.mu.Lock()
	i.closed, i.said = true, nil
	i.mu.Unlock()
	i.lb.Close()
	i.mu.Lock()
	left := i.subConns
	i.subConns = nil
	i.mu.Unlock()
	for sc := range left {
		sc.Shutdown()
	}
}
