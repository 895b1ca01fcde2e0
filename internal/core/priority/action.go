package priority

import (
	"errors"
	"fmt"
	"time"
)

// Action is something that the shell is to do. The actions of one event are to be
// done in order, before the next event.
type Action struct {
	Kind Kind
	// Child is the name of the child that it is about, "" for PublishEmpty.
	Child string
	// After is how long a timer that is to be started runs, and for PublishTimeout
	// how long the child was given to connect.
	After time.Duration
	// Jitter is the window, for StartFailback: a part of it that is drawn at random is
	// added to After.
	Jitter time.Duration
}

// Kind is what an Action asks for.
type Kind int

// The kinds.
const (
	// Create asks to build a child. An Update follows.
	Create Kind = iota
	// Update asks to give a child its configuration and endpoints. Then what it said
	// from inside that is due (Reported, Refused), and Updated.
	Update
	// Destroy asks to close a child. Its timers have been stopped.
	Destroy
	// ExitIdle asks to tell a child to connect.
	ExitIdle

	// MakeStandby asks for the event StandbyDue, once what is to be published has been:
	// no call is to wait until a standby has been made.
	MakeStandby

	// StartFailover and its like ask to start a timer of a child that does not
	// run, or to stop one that does. When it fires, the event of its name is due.
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

	// Publish asks to publish the state and picker that the child last reported,
	// or CONNECTING and a picker that queues if it has not reported yet.
	Publish
	// PublishRefused asks to publish TRANSIENT_FAILURE with the error that the child
	// returned from its last update.
	PublishRefused
	// PublishTimeout asks to publish TRANSIENT_FAILURE with a TimeoutError.
	PublishTimeout
	// PublishEmpty asks to publish TRANSIENT_FAILURE with ErrEmpty.
	PublishEmpty
)

// ErrEmpty is what calls fail with where the configuration has no priorities.
var ErrEmpty = errors.New("priority policy has empty priority list")

// TimeoutError is what calls fail with while the child in use is one whose failover
// timer expired. It is not a status error, so that calls that wait for ready wait.
type TimeoutError struct {
	// Child is the name of the child.
	Child string
	// After is how long it was given to connect.
	After time.Duration
	// Last is the child's last error, nil where none is known.
	Last error
}

// Error says which child did not connect, how long it was given, and its last error.
func (e *TimeoutError) Error() string {
	s := fmt.Sprintf("priority: child %q did not connect within %v", e.Child, e.After)
	if e.Last == nil {
		return s + "; it has reported no error"
	}
	return fmt.Sprintf("%s; its last error: %v", s, e.Last)
}

// Unwrap returns the child's last error.
func (e *TimeoutError) Unwrap() error { return e.Last }
