// Package pickfirst decides which address to try next (gRFC A62) and lets connection attempts
// overlap (gRFC A61). It's a state machine without goroutines, locks, a clock or gRPC types. Each
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

// AttemptDelay is how long we give an address before we try the next one too (gRFC A61, "Connection
// Attempt Delay"). We don't cancel the first attempt.
const AttemptDelay = 250 * time.Millisecond

// ShortLived is the limit below which a connection may count as short-lived. If an address has a
// single short-lived connection, we still reconnect on request, as in A62. After the second in a
// row, we back off. A62 doesn't have that, but without it clients reconnect nonstop to a server
// that accepts connections and then crashes.
//
// Some servers close connections on purpose, after they've served enough calls on each. So a
// connection on which any call was answered isn't short-lived. It would slow down every call if we
// always kept track of that. We only do it after a short-lived connection, and only until the first
// response on the next one.
const ShortLived = time.Second

// ErrShortLived is the error of an address after two or more short-lived connections in a row.
var ErrShortLived = fmt.Errorf("the connection ended within %v of its handshake", ShortLived)

var ErrNoAddresses = errors.New("no addresses: the resolver returned none, or none with a path to this policy")

type State uint8

// None means that the subchannel doesn't exist, or that the policy hasn't published anything yet.
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
	PhaseIdle Phase = iota
	// PhaseConnecting is the first pass, which tries each address once, in order.
	PhaseConnecting
	PhaseReady
	// PhaseRetrying starts when a pass has failed for all addresses and lasts until we're
	// connected. TRANSIENT_FAILURE is sticky in this phase.
	PhaseRetrying
)

var phaseNames = [...]string{"idle", "connecting", "ready", "retrying"}

func (p Phase) String() string { return phaseNames[p] }

type Kind uint8

const (
	// Connect connects the subchannel of address Index. Create it first if need be.
	Connect Kind = iota
	Shutdown
	// StartTimer starts the timer, which isn't running at this point. Call TimerFired after
	// AttemptDelay.
	StartTimer
	StopTimer
	// Publish publishes State and a picker. For READY, the picker picks the subchannel of address
	// Index. For TRANSIENT_FAILURE, it fails calls with Err. For CONNECTING and IDLE, it makes
	// calls wait, and for IDLE it also requests ExitIdle. If Counted is set, the READY picker
	// counts calls, and the policy must call Answered after the first response.
	Publish
	WatchHealth
	Resolve
	// Backoff starts a backoff for address Index after Count failed attempts to connect. The policy
	// must not connect the subchannel until it's over, and must then call Report with Idle.
	Backoff
	// AwaitCalls asks for a call of CallsEnded. The connection of address Index was just lost, and
	// we want to know when none of its counted calls is in flight anymore.
	AwaitCalls
	// Renew replaces the subchannel of address Index with a new one, which has no backoff, and
	// connects it.
	Renew
)

// Action is something for the policy to do. Execute all of them in order before the next event.
type Action struct {
	Kind    Kind
	State   State
	Counted bool
	Index   int
	Err     error
	Count   int
}

// Core makes the decisions for one list of addresses. Its zero value is IDLE without addresses. It
// is not safe for concurrent use.
type Core struct {
	subs    []subchannel
	actions []Action

	next         int32 // during a pass, the address we're trying (or len(subs)); while connected, the connected one
	failuresLeft int32 // how many more failures end the pass or, after the pass, the current round of retries

	connectedAt time.Duration

	phase         Phase
	published     State
	inPass        bool
	requireHealth bool // only publish READY once the server says it's healthy
	keepsFailure  bool // READY isn't published until the server is healthy
}

type subchannel struct {
	state           State
	failed          bool
	owesBackoff     bool // a connection turned out to be short-lived, but the next one had already begun by then
	calls           calls
	shortLivedCount uint32
	err             error
	failedAt        time.Duration
}

type calls uint8

const (
	callsUnknown calls = iota
	callsCounted
	callsAnswered
)

func (c *Core) Phase() Phase { return c.phase }

func (c *Core) InUse(i int) bool { return c.published == Ready && i == int(c.next) }

// takeActions doesn't reuse the slice, because we want an idle Core to be small.
func (c *Core) takeActions() []Action {
	actions := c.actions
	c.actions = nil
	return actions
}

// noAddress is the index in actions that aren't about any address.
const noAddress = 0

func (c *Core) addAction(kind Kind, index int) { c.appendAction(Action{Kind: kind, Index: index}) }

func (c *Core) appendAction(a Action) {
	c.actions = append(c.actions, a)
}

// publish publishes TRANSIENT_FAILURE even twice in a row, because the error may have changed.
func (c *Core) publish(s State, index int, err error) {
	if s == c.published && s != TransientFailure {
		return
	}
	c.published = s
	counted := s == Ready && c.subs[index].calls == callsCounted
	c.appendAction(Action{Kind: Publish, State: s, Counted: counted, Index: index, Err: err})
}
