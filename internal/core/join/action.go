package join

import "time"

// Action is an instruction to the shell. The shell carries out the actions of an event in order. It
// calls sources outside events, because a source may block.
type Action struct {
	Kind Kind
	ID   ID // the mechanism concerned

	// Only for Start:
	Mechanism
	Whole     ID   // the mechanism whose list holds this one, 0 for none
	Heir      ID   // the mechanism whose children's names it keeps, 0 for none
	Inherited bool // Answer is the predecessor's last answer

	Text   string        // for Warn, Say and Show: one line
	Answer Answer        // for Start, Keep, Confirm, ConfirmLast and Accept
	Parts  []Mechanism   // for Keep: a list in place of an answer
	At     time.Time     // for Keep and Confirm; for Start: now if Answer is confirmed, else zero
	Timer  Timer         // for StartTimer and StopTimer
	After  time.Duration // for StartTimer and ShowWell
}

// Kind is the kind of an Action.
type Kind int

// The kinds of actions.
const (
	// Start starts a source. The shell then reports Started or NotStarted, after any answers that
	// the source gives inside Start.
	Start Kind = iota
	// Stop closes a source, unless it could not be started.
	Stop
	// AskAgain requests a re-resolution from a source. TellFailing reports to a source that
	// endpoints fail.
	AskAgain
	TellFailing

	// StartTimer starts a timer that is not running. StopTimer stops a running one. A timer that
	// fires calls Waited, unless it was stopped.
	StartTimer
	StopTimer

	// Keep stores an answer or a list of mechanisms in place of the stored one.
	Keep
	// Confirm records that the stored answer was valid at the given time. If the store has evicted
	// it, the shell stores the action's answer again, if there is one.
	Confirm
	// ConfirmLast is Confirm with the time that the source reports, or now if it reports none. It
	// precedes the Stop of all sources, because a stopped source may have lost that time.
	ConfirmLast

	// Accept reports an answer or a list with new content, which is counted and whose notes are
	// logged.
	Accept
	// Warn logs a warning about a mechanism, and Say an information. Show adds a line to the
	// channel's page only. ShowWell adds the line that a problem is over, which had lasted for
	// After.
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
