package join

import "time"

// Action is an instruction to package internal/channel/join, which executes the actions of an event
// in order. It calls sources only after the event has ended, since a source may block.
type Action struct {
	Kind Kind
	ID   ID

	Mechanism
	Whole ID // the mechanism whose source sent the list that contains this mechanism, or 0

	Text    string        // one line, for Warn, Say and Show
	Kept                  // for Keep and Confirm
	Failure bool          // for ShowRecovered: the problem was a failure
	After   time.Duration // for ShowRecovered: how long the problem lasted
}

type Kind int

const (
	// Start starts a source. The caller then passes to the core what the source has reported during
	// the start, and calls Started.
	Start Kind = iota
	// Stop closes a source, after its start if it is still starting.
	Stop
	// RequestResolution requests a re-resolution from a source. TellFailing tells a source that
	// endpoints are failing.
	RequestResolution
	TellFailing

	// Keep counts an answer or a list with new content, logs its notes, and stores it under the
	// name of the mechanism in place of what was stored. We use it if a source later fails before
	// its first answer (see Config.Kept).
	Keep
	// Confirm records that the stored answer was last known to be valid at the given time or, if the
	// source knows one itself, at that. This precedes Stop: a stopped source may no longer know.
	Confirm

	// Warn logs a warning about a mechanism, and Say logs information. Show adds a line to the
	// channel's debug page without logging it. ShowRecovered adds a line that reports the end of a
	// problem.
	Warn
	Say
	Show
	ShowRecovered
)

func (c *Core) addAction(a Action) { c.actions = append(c.actions, a) }

func (c *Core) takeActions() []Action {
	actions := c.actions
	c.actions = nil
	return actions
}
