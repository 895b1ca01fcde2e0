// Package pickfirst decides which address to try next (gRFC A62), with the overlapping
// attempts of gRFC A61. It is a state machine without goroutines, locks, clock or gRPC
// types: it is told what happened, and answers what to do.
package pickfirst

import (
	"errors"
	"fmt"
	"time"
)

// AttemptDelay is how long an attempt runs alone before the next address is tried
// beside it (gRFC A61, "Connection Attempt Delay").
const AttemptDelay = 250 * time.Millisecond

// ShortLived is how long a connection stands at least after its handshake that is not
// short-lived. The first that ends sooner is made again when somebody asks, as A62 says of
// any. From the second in a row on there is a backoff, which is not in A62: clients of a
// server that accepts and dies would otherwise connect to it as fast as they can.
const ShortLived = time.Second

// ErrShortLived is the error of an address whose connection ended so soon.
var ErrShortLived = fmt.Errorf("the connection ended within %v of its handshake", ShortLived)

// ErrNoAddresses is the error of calls while the list of addresses is empty.
var ErrNoAddresses = errors.New("no addresses: the resolver gave none, or none whose path leads here")

// State is the state of a subchannel, or the one that is published.
type State uint8

// The states of gRPC's connectivity semantics; None is a subchannel that does not
// exist, or a policy that has published nothing.
const (
	None State = iota
	Idle
	Connecting
	Ready
	TransientFailure
)

var stateNames = [...]string{"NONE", "IDLE", "CONNECTING", "READY", "TRANSIENT_FAILURE"}

// String returns the name of the state as gRPC writes it.
func (s State) String() string { return stateNames[s] }

// Phase is what the policy is doing.
type Phase uint8

const (
	// PhaseIdle is waiting to be asked to connect, or for addresses.
	PhaseIdle Phase = iota
	// PhaseConnecting is the first pass over the addresses.
	PhaseConnecting
	// PhaseReady is having a connection.
	PhaseReady
	// PhaseRetrying follows a pass in which all addresses failed and lasts until a
	// connection succeeds; TRANSIENT_FAILURE is published throughout (sticky).
	PhaseRetrying
)

var phaseNames = [...]string{"idle", "connecting", "ready", "retrying"}

// String returns the name of the phase.
func (p Phase) String() string { return phaseNames[p] }

// Kind is a kind of Action.
type Kind uint8

const (
	// Connect asks the subchannel of address Index to connect; it is made first if
	// it does not exist.
	Connect Kind = iota
	// Shutdown shuts the subchannel of address Index down.
	Shutdown
	// StartTimer makes TimerFired be called in AttemptDelay. No timer runs yet.
	StartTimer
	// StopTimer stops the timer, if it runs.
	StopTimer
	// Publish publishes State, with the picker that belongs to it: for Ready the one
	// that picks the subchannel of address Index, for TransientFailure one that
	// fails with Err, for Connecting one that queues, and for Idle one that queues
	// and calls ExitIdle.
	Publish
	// WatchHealth asks for the health of the server at address Index, which is
	// connected.
	WatchHealth
	// Resolve asks for re-resolution.
	Resolve
	// Backoff asks to report IDLE for address Index after a backoff: the one after Count
	// earlier attempts that failed. So long its subchannel is not to be connected.
	Backoff
	// Renew gives address Index another subchannel, which is to connect, and shuts the one
	// before down: gRPC keeps backoffs in subchannels.
	Renew
)

// Action is something to do. Actions are to be carried out in order, and before
// the next event.
type Action struct {
	Kind  Kind
	State State
	Index int // of the address in the list
	Err   error
	Count int // for Backoff
}

// Core decides for one list of addresses. The zero value is idle and has no
// addresses. It is not safe for concurrent use.
type Core struct {
	subs []subchannel // one for each address, in order
	out  []Action

	next int32 // in the pass, the address whose turn it is, or len(subs)
	left int32 // how many more failures end the pass, or after it the round

	since time.Duration // when the connection was made, while there is one

	phase     Phase
	published State
	passing   bool // some address has not had its turn yet
	health    bool // READY waits for the server's health
	held      bool // connected after a failed pass, and not healthy yet
}

type subchannel struct {
	state  State
	failed bool  // in this pass
	short  uint8 // how many connections in a row were short-lived
	err    error // of its last failure
}

// Phase returns the phase.
func (c *Core) Phase() Phase { return c.phase }

// take returns the actions of one event, and forgets them: an idle core is small.
func (c *Core) take() []Action {
	out := c.out
	c.out = nil
	return out
}

func (c *Core) do(kind Kind, index int) { c.add(Action{Kind: kind, Index: index}) }

func (c *Core) add(a Action) {
	if c.out == nil {
		c.out = make([]Action, 0, 4) // more are rare
	}
	c.out = append(c.out, a)
}

// publish publishes a state. It publishes TRANSIENT_FAILURE again for a new error, and
// any other state once.
func (c *Core) publish(s State, index int, err error) {
	if s == c.published && s != TransientFailure {
		return
	}
	c.published = s
	c.add(Action{Kind: Publish, State: s, Index: index, Err: err})
}
