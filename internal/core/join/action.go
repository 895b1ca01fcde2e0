package join

import "time"

// Action is an instruction to package internal/join, which executes the actions of an event in
// order. It calls sources only after the event has ended, because a source may block.
type Action struct {
	Kind Kind
	ID   ID

	Mechanism
	Whole     ID   // the mechanism whose source sent the list that contains this one, or 0
	Heir      ID   // the removed mechanism whose child policy names this one takes over; 0 if there is none
	Inherited bool // Answer comes from the source that had this name in the previous list

	Text   string        // one line, for Warn, Say and Show
	Answer Answer        // for Start, Keep, Confirm, ConfirmLast and Accept
	Parts  []Mechanism   // for Keep: the list to store instead of Answer
	At     time.Time     // for Keep and Confirm: when the answer was valid; for Start: the present time if Answer is known to be valid, otherwise zero
	Timer  Timer         // for StartTimer and StopTimer
	After  time.Duration // for StartTimer: when the timer fires; for ShowWell: how long the problem lasted
}

// Kind is the kind of an Action.
type Kind int

// The kinds of actions.
const (
	// Start starts a source. Afterwards, the caller passes the reports that the source sent during the
	// start, and then calls Started or NotStarted.
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

	// Keep stores an answer or a list, so that it can be used if the channel becomes idle and the
	// source then fails. It replaces the stored one of the mechanism.
	Keep
	// Confirm records that the stored answer was valid at the time At. If the store has dropped that
	// answer and the action contains it, the answer is stored again.
	Confirm
	// ConfirmLast is Confirm with the time that the source reports as its last confirmation. If it
	// reports none, the present time is used. ConfirmLast precedes the Stop of all sources, because a
	// stopped source may have forgotten the time.
	ConfirmLast

	// Accept counts an answer or a list with new content in the metrics, and logs the notes that the
	// answer contains.
	Accept
	// Warn logs a warning about a mechanism, and Say logs information. Show adds a line only to the
	// channel's debug page. ShowWell does so, too, to report that a problem has ended.
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
