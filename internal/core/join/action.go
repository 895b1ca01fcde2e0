package join

import "time"

// Action is an instruction to package internal/join, which executes the actions of an event in
// order. It does not call sources from within an event, because a source may block.
type Action struct {
	Kind Kind
	ID   ID

	// The following fields are used only by Start.
	Mechanism
	Whole     ID   // the mechanism whose source sent the list that contains this one, or 0
	Heir      ID   // the removed mechanism whose child policy names this one takes over, or 0
	Inherited bool // Answer is the last answer of another source under the same name

	Text   string        // one line, for Warn, Say and Show
	Answer Answer        // for Start, Keep, Confirm, ConfirmLast and Accept
	Parts  []Mechanism   // for Keep: the list to store instead of Answer
	At     time.Time     // for Keep and Confirm; for Start, the present time if Answer is confirmed, or zero
	Timer  Timer         // for StartTimer and StopTimer
	After  time.Duration // for StartTimer: its duration; for ShowWell: the duration of the problem
}

// Kind is the kind of an action.
type Kind int

// The kinds of actions.
const (
	// Start starts a source. The caller passes on the source's reports during the start, and then
	// calls Started or NotStarted.
	Start Kind = iota
	// Stop closes a source, unless it could not be started.
	Stop
	// AskAgain requests a re-resolution from a source. TellFailing tells a source that endpoints
	// are failing.
	AskAgain
	TellFailing

	// StartTimer starts a timer that is not running. StopTimer stops a running timer. When a timer
	// fires, Waited must be called, unless the timer was stopped.
	StartTimer
	StopTimer

	// Keep stores an answer or a list. It replaces what was stored for the mechanism.
	Keep
	// Confirm records that the stored answer was valid at the time At. If the store no longer has
	// that answer and the action contains it, it is stored again.
	Confirm
	// ConfirmLast is like Confirm, with the time that the source reports or, if it reports none,
	// the present time. It precedes the Stop of all sources, because a stopped source may have
	// forgotten the time.
	ConfirmLast

	// Accept counts an answer or a list with new content, and logs the notes of an answer.
	Accept
	// Warn logs a warning about a mechanism, and Say logs information. Show only adds a line to the
	// channel's debug page. ShowWell adds a line that a problem has ended.
	Warn
	Say
	Show
	ShowWell
)

func (c *Core) do(a Action) { c.actions = append(c.actions, a) }

func (c *Core) take() []Action {
	actions := c.actions
	c.actions = nil
	return actions
}
