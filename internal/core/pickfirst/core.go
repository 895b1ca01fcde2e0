// Package pickfirst decides which address to try next (gRFC A62), with overlapping connection
// attempts (gRFC A61). It is a state machine without goroutines, locks, a clock or gRPC types. Each
// event returns the actions to execute.
package pickfirst

import (
	"errors"
	"fmt"
	"time"
)

// AttemptDelay is the time after which the next address is tried, although the attempt on the
// current one has not ended (gRFC A61, "Connection Attempt Delay").
const AttemptDelay = 250 * time.Millisecond

// ShortLived is the lifetime below which a connection is short-lived, counted from its handshake.
// After the first such connection, the policy reconnects on request, as in A62. After the second
// one in a row, it waits for a backoff, which A62 does not have. Without it, clients would
// reconnect without a pause to a server that accepts connections and then crashes.
const ShortLived = time.Second

// ErrShortLived is the error of an address with two or more short-lived connections in a row.
var ErrShortLived = fmt.Errorf("the connection ended within %v of its handshake", ShortLived)

// ErrNoAddresses is the error of calls while the list of addresses is empty.
var ErrNoAddresses = errors.New("no addresses: the resolver gave none, or none whose path leads here")

// State is a connectivity state, either of a subchannel or of the policy.
type State uint8

// The connectivity states of gRPC. None means that a subchannel does not exist, or that nothing has
// been published.
const (
	None State = iota
	Idle
	Connecting
	Ready
	TransientFailure
)

var stateNames = [...]string{"NONE", "IDLE", "CONNECTING", "READY", "TRANSIENT_FAILURE"}

func (s State) String() string { return stateNames[s] }

// Phase is the phase of the policy.
type Phase uint8

const (
	// PhaseIdle means that there is no connection and no attempt.
	PhaseIdle Phase = iota
	// PhaseConnecting is the first pass, in which each address is tried once, in order.
	PhaseConnecting
	// PhaseReady means that there is a connection.
	PhaseReady
	// PhaseRetrying begins after a pass in which all addresses failed, and lasts until a connection
	// succeeds. TRANSIENT_FAILURE is sticky in this phase.
	PhaseRetrying
)

var phaseNames = [...]string{"idle", "connecting", "ready", "retrying"}

func (p Phase) String() string { return phaseNames[p] }

// Kind is the kind of an Action.
type Kind uint8

const (
	// Connect connects the subchannel of address Index, and creates it if it does not exist.
	Connect Kind = iota
	// Shutdown shuts down the subchannel of address Index.
	Shutdown
	// StartTimer starts the timer, which is not running. TimerFired must be called after
	// AttemptDelay.
	StartTimer
	// StopTimer stops the timer if it is running.
	StopTimer
	// Publish publishes State with a picker. In READY, the picker picks the subchannel of address
	// Index. In TRANSIENT_FAILURE, it fails calls with Err. In CONNECTING, calls wait. In IDLE, they
	// wait and the picker requests ExitIdle.
	Publish
	// WatchHealth registers a health listener on the subchannel of address Index, which is
	// connected.
	WatchHealth
	// Resolve requests a re-resolution.
	Resolve
	// Backoff starts the backoff for Count failed attempts on address Index. Until it ends, the policy
	// must not connect the subchannel. Then it must report IDLE for the address.
	Backoff
	// Renew replaces the subchannel of address Index with a new one and connects it. The new
	// subchannel has no backoff.
	Renew
)

// Action is an instruction to the policy. Actions are executed in order, before the next event.
type Action struct {
	Kind  Kind
	State State
	Index int
	Err   error
	Count int
}

// Core makes the decisions for one list of addresses. The zero value is IDLE and has no addresses.
// It is not safe for concurrent use.
type Core struct {
	subs []subchannel
	out  []Action

	next int32 // index of the address whose turn is next in a pass, or len(subs)
	left int32 // number of further failures until the pass or, after it, the round of retries ends

	since time.Duration

	phase     Phase
	published State
	passing   bool // some addresses have not had their turn in this pass
	health    bool // a connection must also be healthy before READY is published
	held      bool // while connected: TRANSIENT_FAILURE stays published, because a pass had failed and the server is not healthy yet
}

type subchannel struct {
	state  State
	failed bool
	short  uint8
	err    error
}

// Phase returns the current phase.
func (c *Core) Phase() Phase { return c.phase }

// take returns the actions of an event. It does not reuse the slice, so that an idle Core is small.
func (c *Core) take() []Action {
	out := c.out
	c.out = nil
	return out
}

// noAddress is the index in actions that do not concern an address.
const noAddress = 0

func (c *Core) do(kind Kind, index int) { c.add(Action{Kind: kind, Index: index}) }

func (c *Core) add(a Action) {
	if c.out == nil {
		c.out = make([]Action, 0, 4)
	}
	c.out = append(c.out, a)
}

// publish publishes a state if it differs from the last one. TRANSIENT_FAILURE is always published,
// because the error of calls may differ.
func (c *Core) publish(s State, index int, err error) {
	if s == c.published && s != TransientFailure {
		return
	}
	c.published = s
	c.add(Action{Kind: Publish, State: s, Index: index, Err: err})
}
