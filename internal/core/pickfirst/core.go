// Package pickfirst decides which address to try next (gRFC A62), with overlapping connection
// attempts (gRFC A61). It is a state machine without goroutines, locks, a clock or gRPC types. Each
// event returns the actions to execute:
//
//	the list is a, b, c   ->  publish CONNECTING, connect a
//	250 ms pass           ->  connect b                   a's attempt continues
//	b fails               ->  connect c
//	a is READY            ->  shut down b and c, publish READY with a
package pickfirst

import (
	"errors"
	"fmt"
	"time"
)

// AttemptDelay is how long we give one address before we also try the next (gRFC A61, "Connection
// Attempt Delay"). The attempt that is under way continues.
const AttemptDelay = 250 * time.Millisecond

// ShortLived is the age below which a connection may count as short-lived when it ends. After the
// first one to an address, we reconnect on request, as in A62. After the second one in a row, we
// wait for a backoff, which is an addition to A62: otherwise, clients would reconnect without a
// pause to a server that accepts connections and then crashes.
//
// A server may also end its connections after each has served enough calls, so a connection on
// which a call was answered is not short-lived. Finding this out costs time in each call. We do so
// only after a short-lived connection, and then count the calls on the next one until the first
// response.
const ShortLived = time.Second

// ErrShortLived is the error of an address with two or more short-lived connections in a row.
var ErrShortLived = fmt.Errorf("the connection ended within %v of its handshake", ShortLived)

// ErrNoAddresses is the error of calls while the list of addresses is empty.
var ErrNoAddresses = errors.New("no addresses: the resolver returned none, or none with a path to this policy")

// State is a connectivity state, either of a subchannel or of the policy.
type State uint8

// The connectivity states of gRPC. None is a subchannel that does not exist, or a policy that has
// published nothing.
const (
	None State = iota
	Idle
	Connecting
	Ready
	TransientFailure
)

var stateNames = [...]string{"NONE", "IDLE", "CONNECTING", "READY", "TRANSIENT_FAILURE"}

func (s State) String() string { return stateNames[s] }

type Phase uint8

const (
	// PhaseIdle means that there is no connection and no attempt.
	PhaseIdle Phase = iota
	// PhaseConnecting is the first pass, in which each address is tried once, in order.
	PhaseConnecting
	// PhaseReady means that there is a connection.
	PhaseReady
	// PhaseRetrying begins when a pass has failed at all addresses, and lasts until a connection
	// succeeds. TRANSIENT_FAILURE is sticky here.
	PhaseRetrying
)

var phaseNames = [...]string{"idle", "connecting", "ready", "retrying"}

func (p Phase) String() string { return phaseNames[p] }

type Kind uint8

const (
	// Connect connects the subchannel of address Index, and creates it if it does not exist.
	Connect Kind = iota
	Shutdown
	// StartTimer starts the timer, which is not running before. After AttemptDelay, the policy must
	// call TimerFired.
	StartTimer
	StopTimer
	// Publish publishes State with a picker. In READY, the picker picks the subchannel of address
	// Index. In TRANSIENT_FAILURE, it fails calls with Err. In CONNECTING, it makes calls wait. In
	// IDLE, it also makes calls wait, and requests ExitIdle. With Counted, the picker of READY counts
	// calls: the policy must call Answered after the first response.
	Publish
	// WatchHealth registers a health listener on the subchannel of address Index, which is
	// connected.
	WatchHealth
	// Resolve requests a re-resolution.
	Resolve
	// Backoff starts the backoff after Count failed attempts to connect to address Index. During the
	// backoff, the policy must not connect the subchannel. At its end, the policy must call Report
	// with Idle for the address.
	Backoff
	// AwaitCalls requests CallsEnded for the connection of address Index, which has just been lost, as
	// soon as none of its counted calls is in flight.
	AwaitCalls
	// Renew replaces the subchannel of address Index with a new one and connects it. The new
	// subchannel has no backoff.
	Renew
)

// Action is an instruction to the policy. Actions are executed in order, before the next event.
type Action struct {
	Kind    Kind
	State   State
	Counted bool
	Index   int
	Err     error
	Count   int
}

// Core makes the decisions for one list of addresses. The zero value is IDLE and has no addresses.
// It is not safe for concurrent use.
type Core struct {
	subs    []subchannel
	actions []Action

	next         int32 // in a pass: index of the address that is tried now, or len(subs); while connected: index of the connected address
	failuresLeft int32 // number of further failures until the pass ends or, after the pass, until the round of retries ends

	connectedAt time.Duration // the time at which the last connection was established

	phase         Phase
	published     State
	inPass        bool // a pass has begun and has not ended
	requireHealth bool // READY is published only if the server reports that it is healthy
	keepsFailure  bool // the policy is connected, but TRANSIENT_FAILURE stays published until the server is healthy
}

type subchannel struct {
	state           State
	failed          bool  // an attempt has failed in this pass
	shortLivedCount uint8 // number of consecutive short-lived connections
	owesBackoff     bool  // a connection proved to be short-lived when the next one had already begun
	calls           calls
	err             error
	failedAt        time.Duration // when the last attempt failed
}

type calls uint8

const (
	callsUnknown calls = iota
	callsCounted       // none of them has received a response yet
	callsAnswered
)

func (c *Core) Phase() Phase { return c.phase }

// InUse says whether calls are sent to address i.
func (c *Core) InUse(i int) bool {
	return c.phase == PhaseReady && c.published == Ready && i == int(c.next)
}

// We do not reuse the slice: an idle Core should be small.
func (c *Core) takeActions() []Action {
	actions := c.actions
	c.actions = nil
	return actions
}

// Actions that concern no address have this index.
const noAddress = 0

func (c *Core) addAction(kind Kind, index int) { c.appendAction(Action{Kind: kind, Index: index}) }

func (c *Core) appendAction(a Action) {
	if c.actions == nil {
		c.actions = make([]Action, 0, 4)
	}
	c.actions = append(c.actions, a)
}

// We publish TRANSIENT_FAILURE even twice in a row, since the error of calls may differ.
func (c *Core) publish(s State, index int, err error) {
	if s == c.published && s != TransientFailure {
		return
	}
	c.published = s
	counted := s == Ready && c.subs[index].calls == callsCounted
	c.appendAction(Action{Kind: Publish, State: s, Counted: counted, Index: index, Err: err})
}
