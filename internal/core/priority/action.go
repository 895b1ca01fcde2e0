package priority

import (
	"errors"
	"fmt"
	"time"
)

// Action is an instruction to the policy, which executes those of one event in order before it
// passes on the next event.
type Action struct {
	Kind  Kind
	Child string // "" in PublishEmpty and CallStandbyDue
	// After is the duration of the timer to start, or in PublishTimeout of the one that has fired.
	After time.Duration
}

// Kind is the kind of an Action.
type Kind int

// The kinds of actions.
const (
	Create Kind = iota // an Update follows
	// Update passes a child its configuration and endpoints. The policy calls Reported or Refused for
	// each report of the child during the update, and then Updated.
	Update
	Destroy
	ExitIdle

	// CallStandbyDue asks for a call of StandbyDue once the policy has published its state, so that no
	// RPC waits while we create a standby.
	CallStandbyDue

	// StartFailover and StartDeactivation start timers. When they fire, the policy calls
	// FailoverTimerFired or DeactivationTimerFired.
	StartFailover
	StopFailover
	StartDeactivation
	StopDeactivation

	// Publish publishes the last reported state and picker of the child. Before the first report,
	// these are CONNECTING and a picker that makes calls wait.
	Publish
	PublishRefused
	PublishTimeout
	PublishEmpty
)

// ErrEmpty is the error of calls if the configuration has no priorities.
var ErrEmpty = errors.New("priority policy has empty priority list")

// TimeoutError is the error of calls after the failover timer of the child in use has fired. It is
// not a status error, because that would also fail calls that wait for ready.
type TimeoutError struct {
	Child string
	After time.Duration
	Last  error
}

func (e *TimeoutError) Error() string {
	s := fmt.Sprintf("priority: child %q did not connect within %v", e.Child, e.After)
	if e.Last == nil {
		return s + "; it has reported no error"
	}
	return fmt.Sprintf("%s; its last error: %v", s, e.Last)
}

func (e *TimeoutError) Unwrap() error { return e.Last }
