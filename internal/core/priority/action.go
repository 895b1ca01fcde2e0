package priority

import (
	"errors"
	"fmt"
	"time"
)

// Action is something for the policy to do. It executes all actions of an event, in order, before
// it passes on the next event.
type Action struct {
	Kind  Kind
	Child string // not set in PublishEmpty and CallStandbyDue
	// After is how long the timer to start should run. In PublishTimeout, it's how long the one
	// that has fired ran.
	After time.Duration
}

type Kind int

const (
	Create Kind = iota // an Update always follows
	// Update passes configuration and endpoints to a child. If the child reports anything during
	// the update, the policy calls Reported or Refused for that, and then Updated.
	Update
	Destroy
	ExitIdle

	// CallStandbyDue asks the policy to call StandbyDue once it has published its state. That way,
	// no RPC has to wait while we create a standby.
	CallStandbyDue

	// StartFailover and StartDeactivation start timers. When one fires, call FailoverTimerFired or
	// DeactivationTimerFired, respectively.
	StartFailover
	StopFailover
	StartDeactivation
	StopDeactivation

	// Publish publishes the child's last state and picker. If the child hasn't reported yet,
	// publish CONNECTING and a picker that makes calls wait.
	Publish
	PublishRefused
	PublishTimeout
	PublishEmpty
)

var ErrEmpty = errors.New("priority policy has empty priority list")

// TimeoutError is the error of calls when the failover timer of the child in use has fired. It's
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
