package priority

import (
	"errors"
	"fmt"
	"time"
)

// Action is an instruction to the policy. The policy executes the actions that a method of Core
// returns in order, before it calls the next method.
type Action struct {
	Kind Kind
	// Child is the name of the child that the action applies to. It is "" for PublishEmpty and
	// MakeStandby.
	Child string
	// After is the duration of the timer to start. In PublishTimeout, it is the duration of the
	// failover timer that has fired.
	After time.Duration
}

// Kind is the kind of an Action.
type Kind int

// The kinds of actions.
const (
	// Create builds a child. An Update follows.
	Create Kind = iota
	// Update passes a child its configuration and endpoints. The policy calls Reported or Refused for
	// each report of the child during the update, and then Updated.
	Update
	Destroy
	ExitIdle

	// MakeStandby asks the policy to publish its state and then to call StandbyDue, which creates a
	// standby. Calls then do not wait for the creation.
	MakeStandby

	// StartFailover starts the failover timer of a child, and StopFailover stops it. When the timer
	// fires, the policy calls FailoverTimerFired. The next pair does the same for deactivation.
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
