package debugpage

import (
	"fmt"
	"time"
)

// Page is the content of the debug page and of its JSON format. docs/debug.md describes the fields.
// Text from outside the process is truncated and escaped.
type Page struct {
	Time time.Time `json:"time"`
	// Started is when the process was started. Channel IDs are unique within a process.
	Started  time.Time  `json:"started"`
	Channels []*Channel `json:"channels"`
}

// Channel is a channel on the page.
type Channel struct {
	ID     uint64 `json:"id"`
	Target string `json:"target"`
	// Twin is set if another channel has the same target.
	Twin bool `json:"twin,omitempty"`
	// State is the state of the root policy. It is IDLE for an idle channel, and CONNECTING until
	// there is a policy.
	State string     `json:"state"`
	Since *time.Time `json:"since,omitempty"`
	// Idle is set if the channel is idle and has no policy. Tree is then the last tree.
	Idle bool `json:"idle,omitempty"`
	// InUse is the priority that gets the calls, or "" if there is none.
	InUse string `json:"in_use,omitempty"`
	// InUseSince is when InUse came into use.
	InUseSince *time.Time `json:"in_use_since,omitempty"`
	// Why lists why each higher priority is not in use, or why calls fail. If the priority in use
	// has a problem, Why also covers lower priorities.
	Why []string `json:"why,omitempty"`
	// WhyInUse is the problem of the priority in use, or "".
	WhyInUse string `json:"why_in_use,omitempty"`
	// Recent counts the recent calls of the priority in use.
	Recent  *Recent  `json:"recent,omitempty"`
	Sources []Source `json:"sources,omitempty"`
	Tree    *Policy  `json:"tree,omitempty"`
	Events  []Event  `json:"events,omitempty"`
}

// Label returns the target, with the ID of the channel if another channel has the same target.
func (c *Channel) Label() string {
	if c.Twin {
		return fmt.Sprintf("%s (channel %d)", c.Target, c.ID)
	}
	return c.Target
}

// Said describes the state of calls in a sentence: "Calls go to p0 us-east, 20/s."
func (c *Channel) Said() string { return c.SaidFor("") }

// SaidFor is like Said, and adds the duration long unless it is "": "Calls go to p0 us-east (for 11
// s), 20/s, all failing: INTERNAL."
func (c *Channel) SaidFor(long string) string {
	text := c.becomes()
	if long != "" && !c.Idle {
		text += " (for " + long + ")"
	}
	if said := c.Recent.said(); said != "" && c.goTo() {
		text += ", " + said
	}
	return text + c.last()
}

// SaidSince returns since when the state in Said has lasted, or nil if that is not known.
func (c *Channel) SaidSince() *time.Time {
	if c.State != "READY" {
		return c.Since
	}
	return c.InUseSince
}

// Announced is like Said, without numbers that change every second.
func (c *Channel) Announced() string {
	text := c.becomes()
	if c.Failing() {
		text += ", " + c.Recent.failures()
	}
	return text + c.last()
}

// Failing reports whether at least half of the recent calls of the priority in use failed.
func (c *Channel) Failing() bool { return c.goTo() && c.Recent.Failing() }

// Alarming reports whether at least half of the calls fail, or all because no priority is usable.
func (c *Channel) Alarming() bool {
	return c.Failing() || !c.Idle && c.State == "TRANSIENT_FAILURE"
}

// goTo reports whether calls go to endpoints.
func (c *Channel) goTo() bool { return !c.Idle && (c.State == "READY" || c.State == "IDLE") }

// last returns the end of the sentence.
func (c *Channel) last() string {
	if c.Idle {
		return ": nobody calls, and nothing is connected. Below is what it looked like last."
	}
	return "."
}

func (c *Channel) becomes() string {
	switch {
	case c.Idle:
		return "Idle"
	case c.State == "TRANSIENT_FAILURE" && c.Tree != nil && c.Tree.Policy == "priority" && len(c.Tree.Children) > 0:
		return "No priority can take calls"
	case c.State == "TRANSIENT_FAILURE":
		return "Calls fail"
	case c.InUse != "" && c.State == "CONNECTING":
		return "Calls wait for " + c.InUse
	case c.InUse != "":
		return "Calls go to " + c.InUse
	case c.State == "CONNECTING":
		return "Calls wait"
	}
	return "Calls are taken"
}

// Reasons describes, one per line, the problem of the priority in use and why each other priority
// is not in use, or why calls fail.
func (c *Channel) Reasons() (lines []string) {
	if c.WhyInUse != "" {
		lines = append(lines, c.InUse+": "+c.WhyInUse)
	}
	for _, why := range c.Why {
		if c.Elsewhere() {
			why = "Not " + why
		}
		lines = append(lines, why)
	}
	return lines
}

// Elsewhere reports whether a priority is in use, so that Why is about other priorities.
func (c *Channel) Elsewhere() bool {
	return c.InUse != "" && c.State != "TRANSIENT_FAILURE" && !c.Idle
}

// Source is one source of a channel's endpoints.
type Source struct {
	Name  string `json:"name,omitempty"`
	State string `json:"state"`
	// Trying is the pending operation, unless the source has answered or failed.
	Trying string `json:"trying,omitempty"`
	// Version is the version of the answer, as given by the source.
	Version  string     `json:"version,omitempty"`
	Answered *time.Time `json:"answered,omitempty"`
	// Error is the current error. LastError is the last error, even if it is resolved, and
	// LastErrorAt is its time.
	Error       string     `json:"error,omitempty"`
	LastError   string     `json:"last_error,omitempty"`
	LastErrorAt *time.Time `json:"last_error_at,omitempty"`
	// Notes list content of the answer that has no effect.
	Notes []string `json:"notes,omitempty"`
	// ErrorSince is when the current error began. Confirmed is when the endpoints in use were last
	// confirmed.
	ErrorSince *time.Time `json:"error_since,omitempty"`
	Confirmed  *time.Time `json:"confirmed,omitempty"`
	Endpoints  int        `json:"endpoints"`
	Priorities int        `json:"priorities"`
}

// Event is an event in the history of a channel.
type Event struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

// Policy is a load-balancing policy.
type Policy struct {
	Policy string     `json:"policy"`
	State  string     `json:"state,omitempty"`
	Since  *time.Time `json:"since,omitempty"`
	// BusySince is set if the policy has been handling events for at least a second. All other
	// fields then show its state before that.
	BusySince *time.Time `json:"busy_since,omitempty"`
	Error     string     `json:"error,omitempty"`
	// Through lists the policies above this one that have a single child, such as drop, topmost
	// first.
	Through []Layer `json:"through,omitempty"`
	// Notes contain additional facts, such as what is dropped.
	Notes    []string `json:"notes,omitempty"`
	Children []*Child `json:"children,omitempty"`
	// Folded counts the omitted children by state.
	Folded map[string]int `json:"folded,omitempty"`

	tally tally
}

// Layer is a policy that passes its calls to a single child.
type Layer struct {
	Policy string     `json:"policy"`
	State  string     `json:"state,omitempty"`
	Since  *time.Time `json:"since,omitempty"`
	Error  string     `json:"error,omitempty"`
}

// Child is a child of a policy: a priority, a locality or an endpoint.
type Child struct {
	Name string `json:"name"`
	// Title is the display name, if it differs from Name.
	Title string     `json:"title,omitempty"`
	State string     `json:"state"`
	Since *time.Time `json:"since,omitempty"`
	// Error is the last error, even if it is resolved, and ErrorAt is when it was last reported.
	Error   string     `json:"error,omitempty"`
	ErrorAt *time.Time `json:"error_at,omitempty"`
	InUse   bool       `json:"in_use,omitempty"`
	// Why is why a priority is not in use, or what it is waiting for.
	Why string `json:"why,omitempty"`
	// Addresses are the addresses of an endpoint that has more than one.
	Addresses []string `json:"addresses,omitempty"`
	Weight    uint32   `json:"weight,omitempty"`
	// Share is the share of the channel's calls that it should currently get.
	Share float64 `json:"share"`
	// Scheduled is how many calls the parent's scheduler gave it.
	Scheduled uint64 `json:"scheduled,omitempty"`
	Calls     *Calls `json:"calls,omitempty"`
	// Recent counts its recent calls.
	Recent *Recent `json:"recent,omitempty"`
	// Ejected describes what ejected the endpoint and for how long.
	Ejected string `json:"ejected,omitempty"`
	// EjectedBy is the algorithm that ejected it, and EjectedUntil is the end of the ejection.
	EjectedBy    string     `json:"ejected_by,omitempty"`
	EjectedUntil *time.Time `json:"ejected_until,omitempty"`
	Below        *Policy    `json:"below,omitempty"`

	order int  // sort key of an endpoint: problems come first
	open  bool // unfolded on the page
	tally tally
}

// tally counts endpoints and their calls, including folded ones.
type tally struct {
	endpoints, ready int
	recent           recents
}

func (t *tally) add(c *Child) {
	t.endpoints += c.tally.endpoints
	t.ready += c.tally.ready
	for i := range t.recent {
		t.recent[i].Add(c.tally.recent[i])
	}
}

// Calls counts the calls of an endpoint since it was first used.
type Calls struct {
	Started  uint64 `json:"started"`
	InFlight uint64 `json:"in_flight"`
	Failed   uint64 `json:"failed"`
}
