package shell

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

// OwnsSubConns marks builders of policies whose Close shuts down all of their subchannels, as gRPC
// recommends. For any other policy, the Instance takes care of that.
type OwnsSubConns interface{ OwnsSubConns() }

type Owner interface {
	Reported(i *Instance, state balancer.State)
	// ResolveNow is called when the policy requests a re-resolution, on the policy's stack.
	ResolveNow()
}

// Instance is a child policy together with its ClientConn. A channel can have tens of thousands of
// these, so it's small. Apart from those of balancer.ClientConn, only call its exported methods in
// events. If the type of the child policy can change, use Child instead.
type Instance struct {
	balancer.ClientConn

	shell       *Shell
	owner       Owner
	lb          balancer.Balancer
	state       balancer.State
	since       int64 // Unix nanoseconds; 0 until the connectivity state has changed
	lastFailure *failureRecord

	mu              sync.Mutex
	recordsSubConns bool // record subchannels in subConns, since the policy's Close may leave some open
	closed          bool
	handling        bool // only used in events
	queued          int32
	lastReport      *report // the newest in the queue, or nil; its next is the oldest
	subConns        map[balancer.SubConn]struct{}
}

type report struct {
	state balancer.State
	next  *report
}

// reports is worth having because 10,000 endpoints send 30,000 reports when they connect.
var reports = sync.Pool{New: func() any { return new(report) }}

func (i *Instance) Build(s *Shell, builder balancer.Builder, owner Owner) bool {
	_, ownsSubConns := builder.(OwnsSubConns)
	i.ClientConn, i.shell, i.owner = s.ClientConn, s, owner
	i.state, i.recordsSubConns = Connecting(), !ownsSubConns
	i.lb = builder.Build(i, s.Options)
	return i.lb != nil
}

func (i *Instance) State() balancer.State { return i.state }

// Update updates the child policy and returns its error. If that makes the child count as failed
// (see Shell.Refused), the owner gets TRANSIENT_FAILURE too. name is what errors and logs call the
// child.
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

// update handles all reports from before and during the update before it returns, because A56 looks
// at the child's state right after "child.Update()". The error has no status (see Plain).
func (i *Instance) update(config serviceconfig.LoadBalancingConfig, state resolver.State) error {
	i.handleReports()
	err := i.lb.UpdateClientConnState(balancer.ClientConnState{ResolverState: state, BalancerConfig: config})
	i.handleReports()
	return Plain(err)
}

// UpdateState queues a report. The child policy may be holding locks, so we can't handle it here.
func (i *Instance) UpdateState(state balancer.State) {
	i.queueReport(state)
	i.shell.serial.Queue((*reportEvent)(i))
}

func (i *Instance) queueReport(state balancer.State) {
	r := reports.Get().(*report)
	r.state = state
	i.mu.Lock()
	r.next = r
	if last := i.lastReport; last != nil {
		r.next, last.next = last.next, r
	}
	i.lastReport = r
	i.queued++
	i.mu.Unlock()
}

type reportEvent Instance

func (t *reportEvent) Run() { (*Instance)(t).handleReport() }

// handleReport takes the oldest report. It returns false if there is none or the policy is closed.
func (i *Instance) handleReport() bool {
	i.mu.Lock()
	last, closed := i.lastReport, i.closed
	if last == nil {
		i.mu.Unlock()
		return false
	}
	r := last.next
	if last.next = r.next; r == last {
		i.lastReport = nil
	}
	i.queued--
	i.mu.Unlock()
	state := r.state
	*r = report{}
	reports.Put(r)
	if closed {
		return false
	}
	recordChange(&i.since, i.state.ConnectivityState, state.ConnectivityState)
	recordFailure(&i.lastFailure, state)
	i.state = state
	i.owner.Reported(i, state)
	return true
}

// handleReports handles the reports that are in the queue now. There'll be an event for any later
// ones, and a policy that keeps reporting shouldn't hold up the rest. We also don't let this
// recurse. Otherwise a policy that reports IDLE whenever it's told to connect would overflow the
// stack.
func (i *Instance) handleReports() {
	if i.handling {
		return
	}
	i.handling = true
	defer func() { i.handling = false }()
	i.mu.Lock()
	n := i.queued
	i.mu.Unlock()
	for range n {
		if !i.handleReport() {
			return
		}
	}
}

func (i *Instance) ResolveNow(resolver.ResolveNowOptions) {
	if !i.isClosed() {
		i.owner.ResolveNow()
	}
}

var errClosed = errors.New("a closed policy called NewSubConn")

func (i *Instance) NewSubConn(addresses []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	if i.isClosed() {
		return nil, errClosed
	}
	if !i.recordsSubConns {
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
	_, isOpen := i.subConns[sc]
	if state.ConnectivityState == connectivity.Shutdown {
		delete(i.subConns, sc)
	}
	i.mu.Unlock()
	switch {
	case !isOpen:
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

func (i *Instance) ResolverError(err error) { i.lb.ResolverError(err) }

func (i *Instance) ExitIdle() { i.lb.ExitIdle() }

// ResetBackoff does nothing unless the policy is a BackoffResetter. Policies of other modules
// usually aren't.
func (i *Instance) ResetBackoff(atLeast time.Duration) {
	if r, ok := i.lb.(BackoffResetter); ok {
		r.ResetBackoff(atLeast)
	}
}

// Connect tells the policy to connect, and handles whatever it reports during the call. If that
// includes CONNECTING, the parent doesn't have to publish IDLE first.
func (i *Instance) Connect() {
	i.lb.ExitIdle()
	i.handleReports()
}

// Remove ignores the policy from now on, and closes it once the parent has published its next
// state. Calls may still be using the policy's subchannels until then.
func (i *Instance) Remove() {
	i.mu.Lock()
	i.closed = true
	i.mu.Unlock()
	i.shell.removed = append(i.shell.removed, i)
}

// Close closes the policy and shuts down any subchannels that it left open. i may be nil.
func (i *Instance) Close() {
	if i == nil {
		return
	}
	i.mu.Lock()
	i.closed, i.lastReport = true, nil
	i.mu.Unlock()
	i.lb.Close()
	i.mu.Lock()
	open := i.subConns
	i.subConns = nil
	i.mu.Unlock()
	for sc := range open {
		sc.Shutdown()
	}
}
