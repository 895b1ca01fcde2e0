package join

import "time"

// Action is something for package internal/channel/join to do. It executes the actions of an event
// in order, but calls sources only after the event is over because a source may block.
type Action struct {
	Kind Kind
	ID   ID

	Mechanism
	Parent ID // if the mechanism is part of a list, the one whose source sent that list; otherwise 0

	Text    string        // one line, for Warn, Say and Show
	Kept                  // only for Keep and Confirm
	Current bool          // for Keep and Confirm: we will hear of any change
	Failure bool          // for ShowRecovered: it was a failure, not just a doubt
	After   time.Duration // for ShowRecovered: how long the problem lasted
}

type Kind int

const (
	// Start starts a source. The caller then passes on whatever the source reported while it was
	// starting, and calls Started at the end.
	Start Kind = iota
	// Stop closes a source. If the source is still starting, wait for that first.
	Stop
	// CallResolveNow asks a source to resolve again. CallEndpointsFailed lets it know that endpoints are
	// failing.
	CallResolveNow
	CallEndpointsFailed

	// Keep stores an answer or a list with new content under the mechanism's name, replacing what
	// was there. We fall back to it if a source later fails before its first answer (see
	// Config.Kept). Keep also counts the answer and logs its notes.
	Keep
	// Confirm records when the stored answer was last known to be valid. That's the time in the
	// action, unless the source itself knows better. We send it before Stop, since a stopped source
	// may have forgotten.
	Confirm

	// Warn logs a warning about a mechanism, and Say logs at info level. Show adds a line to the
	// channel's debug page without logging anything. ShowRecovered adds one that says a problem is
	// over.
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
