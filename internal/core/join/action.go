package join

import "time"

// Action is something that the shell is to do. The actions of one event are to be done in
// order. What calls a source is done outside events, since sources may block.
type Action struct {
	Kind Kind
	ID   ID // of the mechanism that it is about

	// For Start.
	Mechanism
	Whole     ID   // of which it is a part, if it is
	Heir      ID   // whose names its children keep, if it follows one
	Inherited bool // Answer is what that one answered last

	Text   string        // for Warn, Say and Show: about the mechanism, in a line
	Answer Answer        // for Start, Keep, Confirm, ConfirmLast and Accept
	Parts  []Mechanism   // for Keep: in place of an answer
	At     time.Time     // for Keep and Confirm; for Start: now, if Answer is known to hold
	Timer  Timer         // for StartTimer and StopTimer
	After  time.Duration // for StartTimer and ShowWell
}

// Kind is what an Action asks for.
type Kind int

// The kinds.
const (
	// Start asks to start a source. Started or NotStarted is then due, maybe after what the
	// source says from inside.
	Start Kind = iota
	// Stop asks to close a source, unless it could not be started.
	Stop
	// AskAgain asks a source to look again, and TellFailing tells it that endpoints fail.
	AskAgain
	TellFailing

	// StartTimer asks to start a timer that does not run, and StopTimer to stop one that does. When
	// it fires, Waited is due; where it was stopped meanwhile it is not.
	StartTimer
	StopTimer

	// Keep asks to keep an answer or a list of parts, in place of what was kept of the mechanism.
	Keep
	// Confirm asks to note that what is kept was so at the given time. Where it is kept no longer,
	// because the store was full, the answer is kept again, if the action has one.
	Confirm
	// ConfirmLast is Confirm for the time that the source says, or else now. It comes before any
	// source of the channel is stopped: one that is may not know any more.
	ConfirmLast

	// Accept asks to count an answer or a list that says something new, and to log its notes.
	Accept
	// Warn, Say and Show ask to note something about a mechanism: as a warning, as a line of the
	// log, and only where the channel is shown. ShowWell asks to show that what was wrong for
	// After is over.
	Warn
	Say
	Show
	ShowWell
)

func (c *Core) do(a Action) { c.actions = append(c.actions, a) }

// take returns the actions of an event.
func (c *Core) take() []Action {
	actions := c.actions
	c.actions = nil
	return actions
}
