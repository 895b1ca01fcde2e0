package join

import "time"

// Action is an instruction to the shell. The shell executes the actions of an event in order. It
// calls sources outside events, because a source may block.
type Action struct {
	Kind Kind
	ID   ID // the mechanism concerned

	// The following fields are used only by Start.
	Mechanism
	Whole     ID   // the mechanism whose list contains this one, or 0
	Heir      ID   // the mechanism whose child names this one keeps, or 0
	Inherited bool // Answer is the last answer of the predecessor

	Text   string        // for Warn, Say and Show: one line
	Answer Answer        // for Start, Keep, Confirm, ConfirmLast and Accept
	Parts  []Mechanism   // for Keep: a list instead of an answer
	At     time.Time     // for Keep and Confirm; for Start: the current time if Answer is confirmed, otherwise zero
	Timer  Timer         // for StartTimer and StopTimer
	After  time.Duration // for StartTimer and ShowWell
}

// Kind is the kind of an Action.
type Kind int

// These are the kinds of actions.
const (
	// Start starts a source. The shell then reports Started or NotStarted, after any answers that
	// the source gives inside Start.
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

	// Keep stores an answer or a list of mechanisms. It replaces the stored answer or list.
	Keep
	// Confirm records that the stored answer was valid at the given time. If the store has evicted
	// the answer, the shell stores the action's answer again, if there is one.
	Confirm
	// ConfirmLast is like Confirm, but with the time that the source reports, or the current time
	// if the source reports none. It precedes the Stop of all sources, because a stopped source may
	// no longer know that time.
	ConfirmLast

	// Accept reports an answer or a list with new content. The shell counts it and logs its notes.
	Accept
	// Warn logs a warning about a mechanism, and Say logs information about it. Show only adds a
	// line to the channel's page. ShowWell adds the line that a problem is over; the problem lasted
	// for After.
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
