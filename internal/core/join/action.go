package join

import "time"

// Action is an instruction to the shell. It executes the actions of an event in order. A source may
// block, so the shell calls sources outside events.
type Action struct {
	Kind Kind
	ID   ID // the mechanism that the action is about

	// The following fields are used only by Start.
	Mechanism
	Whole     ID   // the mechanism that sent the list with this one, or 0
	Heir      ID   // for Start: the mechanism whose child policies keep their names for this one, or 0
	Inherited bool // Answer was inherited from the predecessor

	Text   string        // one line, for Warn, Say and Show
	Answer Answer        // for Start, Keep, Confirm, ConfirmLast and Accept
	Parts  []Mechanism   // for Keep: a list, instead of an answer
	At     time.Time     // for Keep and Confirm; for Start: the present time if Answer is confirmed, or zero
	Timer  Timer         // for StartTimer and StopTimer
	After  time.Duration // for StartTimer and ShowWell
}

// Kind is the kind of an Action.
type Kind int

// These are the kinds of actions.
const (
	// Start starts a source. The shell then calls Started or NotStarted, after the events for what
	// the source reports inside Start.
	Start Kind = iota
	// Stop closes a source, unless it could not be started.
	Stop
	// AskAgain requests a re-resolution from a source. TellFailing reports to a source that
	// endpoints are failing.
	AskAgain
	TellFailing

	// StartTimer starts a timer that is not running. StopTimer stops a running timer. When a timer
	// fires, the shell calls Waited, unless the timer was stopped.
	StartTimer
	StopTimer

	// Keep stores an answer or a list, which replaces what was stored for the mechanism.
	Keep
	// Confirm records the time At, at which the stored answer was known to be valid. If the answer
	// is no longer stored and the action contains it, the shell stores it again.
	Confirm
	// ConfirmLast is like Confirm, but with the time that the source returns, or the present time
	// if it returns none. It precedes the Stop of all sources, because a stopped source may no
	// longer know that time.
	ConfirmLast

	// Accept reports an answer or a list with new content. The shell counts it and logs its notes.
	Accept
	// Warn logs a warning about a mechanism, and Say logs information about it. Show adds a line to
	// the channel's debug page only. ShowWell adds a line that a problem is over; the problem
	// lasted for After.
	Warn
	Say
	Show
	ShowWell
)

func (c *Core) do(a Action) { c.actions = append(c.actions, a) }

// take returns the actions of the current event.
func (c *Core) take() []Action {
	actions := c.actions
	c.actions = nil
	return actions
}
