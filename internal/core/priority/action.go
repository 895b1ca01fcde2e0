package priority

import (
	"errors"
	"fmt"
	"time"
)

// Action is an instruction to the shell. The actions of an event are executed in order, before the
// next event.
type Action struct {
	Kind Kind
	// Child is the name of the child. It is "" for PublishEmpty and MakeStandby.
	Child string
	// After is the duration of the timer to start. In PublishTimeout, it is how long the child had
	// to connect.
	After time.Duration
	// Jitter is used by StartFailback: a random share of it is added to After.
	Jitter time.Duration
}

// Kind is the kind of an Action.
type Kind int

// These are the kinds of actions.
const (
	// Create builds a child. An Update follows.
	Create Kind = iota
	// Update passes a child its configuration and endpoints. The shell then calls Reported or
	// Refused for what the child reports during the update, and finally Updated.
	Update
	// Destroy closes a child. Its timers are stopped already.
	Destroy
	ExitIdle

	// MakeStandby makes the shell call StandbyDue after it has published the pending state, so that
	// no call waits while a standby is created.
	MakeStandby

	// StartFailover starts a timer of a child, and StopFailover stops it. When the timer fires, the
	// shell must call FailoverTimerFired. The other timers work in the same way.
	StartFailover
	StopFailover
	StartDeactivation
	StopDeactivation
	StartFailback
	StopFailback
	StartSteady
	StopSteady
	StartHeadStart
	StopHeadStart

	// Publish publishes the state and picker that the child reported last. If it has not reported
	// yet, these are CONNECTING and a picker that makes calls wait.
	Publish
	// PublishRefused publishes TRANSIENT_FAILURE with the error of the child's last update.
	PublishRefused
	// PublishTimeout publishes TRANSIENT_FAILURE with a TimeoutError.
	PublishTimeout
	// PublishEmpty publishes TRANSIENT_FAILURE with ErrEmpty.
	PublishEmpty
)

// ErrEmpty is the error of calls if the configuration has no priorities.
var ErrEmpty = errors.New("priority policy has empty priority list")

// TimeoutError is the error of calls after the failover timer of the child in use has fired. It is
// no status error, because that would also fail wait-for-ready calls.
type TimeoutError struct {
	Child string
	// After is how long the child had to connect.
	After time.Duration
	// Last is the child's last error, or nil if unknown.
	Last error
}

func (e *TimeoutError) Error() string {
	s := fmt.Sprintf("priority: child %q did not connect within %v", e.Child, e.After)
	if e.Last == nil {
		return s + "; it has reported no error"
	}
	return fmt.Sprintf("%s; its last error: %v", s, e.Last)
}

func (e *TimeoutError) Unwrap() error { return e.Last }
