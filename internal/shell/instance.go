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

// OwnsSubConns marks builders of policies that shut down, in Close, every subchannel
// that they made. gRPC only recommends that, so the subchannels of all other policies
// are remembered and shut down for them.
type OwnsSubConns interface{ OwnsSubConns() }

// Owner is told what an Instance does.
type Owner interface {
	// Reported is called in an event, with each state that the policy reported.
	Reported(i *Instance, state balancer.State)
	// ResolveNow is called on the policy's own stack when it asks for re-resolution.
	ResolveNow()
}

// Instance is one child policy that was built, and the ClientConn that it sees. There
// may be tens of thousands of them, so it is small, and a field of its owner. A child
// whose policy may change its type is a Child. Exported methods are called in events,
// except those of balancer.ClientConn.
type Instance struct {
	balancer.ClientConn // the parent's

	shell *Shell
	owner Owner
	lb    balancer.Balancer // nil once it is closed
	state balancer.State    // last reported
	since int64             // when that changed, in Unix nanoseconds; 0 where it was not noted
	past  *past             // its last failure, nil where it was not noted

	mu       sync.Mutex
	remember bool    // remember subchannels: the policy may leave some when it closes
	closed   bool    // or about to be closed: what it does is ignored
	said     *report // reports that no event has taken in yet, the oldest first
	last     *report
	subConns map[balancer.SubConn]struct{}
}

type report struct {
	state balancer.State
	next  *report
}

// reports are free reports, for use again: 10,000 endpoints that come up make 30,000.
var reports = sync.Pool{New: func() any { return new(report) }}

// Build builds the policy, and returns false if the builder returned none.
func (i *Instance) Build(s *Shell, builder balancer.Builder, owner Owner) bool {
	_, owns := builder.(OwnsSubConns)
	i.ClientConn, i.shell, i.owner = s.ClientConn, s, owner
	i.state, i.remember = Connecting(), !owns
	i.lb = builder.Build(i, s.Options)
	return i.lb != nil
}

// State returns what the policy reported last, CONNECTING before that.
func (i *Instance) State() balancer.State { return i.state }

// Update updates the policy, which is called child name in errors and logs, and returns its
// error. Where that counts, it is a report of the policy's; see Shell.Refused.
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

// update updates the policy and returns its error, made Plain. It first passes on what
// the policy reported before, and before it returns what the policy reported from
// inside the update: gRFC A56 runs child.Update() and then reads the child's state.
func (i *Instance) update(config serviceconfig.LoadBalancingConfig, state resolver.State) error {
	i.takeAll()
	err := i.lb.UpdateClientConnState(balancer.ClientConnState{ResolverState: state, BalancerConfig: config})
	i.takeAll()
	return Plain(err)
}

// UpdateState is called by the policy, on its own stack and maybe with its own locks
// held: it only queues.
func (i *Instance) UpdateState(state balancer.State) {
	i.say(state)
	i.shell.serial.Queue((*taking)(i))
}

// say notes a report of the policy, for a taking to take in.
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

// taking is the event that takes in one report, unless that has been done.
type taking Instance

func (t *taking) Run() { (*Instance)(t).take() }

// take takes in the oldest report, and returns whether there was one.
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

// ResolveNow is called by the policy, on its own stack.
func (i *Instance) ResolveNow(resolver.ResolveNowOptions) {
	if !i.isClosed() {
		i.owner.ResolveNow()
	}
}

var errClosed = errors.New("a closed policy called NewSubConn")

// NewSubConn makes a subchannel, and remembers it if the policy may not shut it down.
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

// subConnReported passes a subchannel's state on to the policy that made it.
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

// ResolverError passes an error of the resolver on to the policy.
func (i *Instance) ResolverError(err error) { i.lb.ResolverError(err) }

// ExitIdle asks the policy to connect.
func (i *Instance) ExitIdle() { i.lb.ExitIdle() }

// ResetBackoff is described at BackoffResetter. A policy of others cannot do it.
func (i *Instance) ResetBackoff() {
	if r, ok := i.lb.(BackoffResetter); ok {
		r.ResetBackoff()
	}
}

// Connect asks the policy to connect, and takes in what it reports from inside that.
// Where it is CONNECTING then, nobody above has to hear that it was IDLE before.
func (i *Instance) Connect() {
	i.lb.ExitIdle()
	i.takeAll()
}

// Remove closes the policy once the parent has published its next state: until then the
// policy's subchannels serve calls. What the policy reports is ignored at once.
func (i *Instance) Remove() {
	i.mu.Lock()
	i.closed = true
	i.mu.Unlock()
	i.shell.removed = append(i.shell.removed, i)
}

// Close closes the policy and shuts down the subchannels that it left. On a nil
// Instance it does nothing.
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
