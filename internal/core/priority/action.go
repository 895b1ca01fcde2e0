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
	// After is the duration of the timer to start. For PublishTimeout it is how long the child had
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
	// Update gives a child its configuration and endpoints. The events for the child's reports
	// during the update (Reported, Refused) follow, and then Updated.
	Update
	// Destroy closes a child. Its timers have been stopped before.
	Destroy
	ExitIdle

	// MakeStandby requests the event StandbyDue. The event must follow the publication of the
	// pending state, so that no call waits for the creation of a standby.
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

	// Publish publishes the last reported state and picker of the child. Before the child's first
	// report, these are CONNECTING and a picker that queues.
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

// TimeoutError is the error of calls if the failover timer of the child in use has fired. It is not
// a status error, because a status error would also fail wait-for-ready calls.
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
