package debugpage

import (
	"fmt"
	"time"
)

// Page is what the page shows, and what ?format=json answers with. docs/debug.md
// describes its fields. Text from outside is cut, and has what is not printable escaped.
type Page struct {
	Time time.Time `json:"time"`
	// Started is when the process was. Another one has other channels.
	Started  time.Time  `json:"started"`
	Channels []*Channel `json:"channels"`
}

// Channel is one channel.
type Channel struct {
	ID     uint64 `json:"id"`
	Target string `json:"target"`
	// Twin is set where another channel has the same target.
	Twin bool `json:"twin,omitempty"`
	// State is that of its top policy, IDLE where it has none, CONNECTING before.
	State string     `json:"state"`
	Since *time.Time `json:"since,omitempty"`
	// Idle is set where the channel has no policy: Tree is what it had last.
	Idle bool `json:"idle,omitempty"`
	// InUse is the priority that gets the calls, "" where there is none to be named.
	InUse string `json:"in_use,omitempty"`
	// InUseSince is when it began to get them.
	InUseSince *time.Time `json:"in_use_since,omitempty"`
	// Why says why no priority above that is in use, or why calls fail. Where something is wrong
	// with the one in use, it says also why none below is.
	Why []string `json:"why,omitempty"`
	// WhyInUse says what is wrong with the priority in use, "" for nothing.
	WhyInUse string `json:"why_in_use,omitempty"`
	// Recent is what became of the last calls that the priority in use got.
	Recent  *Recent  `json:"recent,omitempty"`
	Sources []Source `json:"sources,omitempty"`
	Tree    *Policy  `json:"tree,omitempty"`
	Events  []Event  `json:"events,omitempty"`
}

// Label is the target, with a number where another channel has the same.
func (c *Channel) Label() string {
	if c.Twin {
		return fmt.Sprintf("%s (channel %d)", c.Target, c.ID)
	}
	return c.Target
}

// Said says in a sentence what becomes of the channel's calls: "Calls go to p0 us-east, 20/s."
func (c *Channel) Said() string { return c.SaidFor("") }

// SaidFor is Said, with for how long it has been so unless that is "": "Calls go to p0
// us-east (for 11 s), 20/s, all failing: INTERNAL."
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

// SaidSince is since when Said is so, nil where that is not known.
func (c *Channel) SaidSince() *time.Time {
	if c.State != "READY" {
		return c.Since
	}
	return c.InUseSince
}

// Announced is Said without what changes each second.
func (c *Channel) Announced() string {
	text := c.becomes()
	if c.Failing() {
		text += ", " + c.Recent.failures()
	}
	return text + c.last()
}

// Failing reports whether at least half of the last calls of the priority in use failed.
func (c *Channel) Failing() bool { return c.goTo() && c.Recent.Failing() }

// Alarming reports whether calls fail: half of them at least, or all for want of a priority.
func (c *Channel) Alarming() bool {
	return c.Failing() || !c.Idle && c.State == "TRANSIENT_FAILURE"
}

// goTo reports whether calls go to endpoints.
func (c *Channel) goTo() bool { return !c.Idle && (c.State == "READY" || c.State == "IDLE") }

// last ends the sentence.
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

// Reasons says in a line each what is wrong with the priority in use, and why none above it
// is, nor below where something is wrong; or why calls fail.
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

// Elsewhere returns whether calls go to a priority, so that Why is about those above it.
func (c *Channel) Elsewhere() bool {
	return c.InUse != "" && c.State != "TRANSIENT_FAILURE" && !c.Idle
}

// Source is one source of a channel's endpoints.
type Source struct {
	Name  string `json:"name,omitempty"`
	State string `json:"state"`
	// Trying is what it waits for, where it has said nothing else.
	Trying string `json:"trying,omitempty"`
	// Version is what the source calls its answer.
	Version  string     `json:"version,omitempty"`
	Answered *time.Time `json:"answered,omitempty"`
	// Error is what is wrong now. LastError is what was wrong last, also where it is over,
	// and LastErrorAt when the source said that last.
	Error       string     `json:"error,omitempty"`
	LastError   string     `json:"last_error,omitempty"`
	LastErrorAt *time.Time `json:"last_error_at,omitempty"`
	// Notes say what its answer has and what has no effect.
	Notes []string `json:"notes,omitempty"`
	// ErrorSince is since when something is wrong. Confirmed is until when its endpoints,
	// which are used on, were confirmed.
	ErrorSince *time.Time `json:"error_since,omitempty"`
	Confirmed  *time.Time `json:"confirmed,omitempty"`
	Endpoints  int        `json:"endpoints"`
	Priorities int        `json:"priorities"`
}

// Event is something that happened to a channel.
type Event struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

// Policy is a load-balancing policy.
type Policy struct {
	Policy string     `json:"policy"`
	State  string     `json:"state,omitempty"`
	Since  *time.Time `json:"since,omitempty"`
	// BusySince is set where the policy has handled events for a second and more. All
	// else is what it looked like before.
	BusySince *time.Time `json:"busy_since,omitempty"`
	Error     string     `json:"error,omitempty"`
	// Through are the policies with a single child that stand above this one, such as drop,
	// the topmost first.
	Through []Layer `json:"through,omitempty"`
	// Notes say what else there is to say, such as what is dropped.
	Notes    []string `json:"notes,omitempty"`
	Children []*Child `json:"children,omitempty"`
	// Folded is how many more children there are, by state.
	Folded map[string]int `json:"folded,omitempty"`

	tally tally
}

// Layer is a policy that passes the calls on to one child.
type Layer struct {
	Policy string     `json:"policy"`
	State  string     `json:"state,omitempty"`
	Since  *time.Time `json:"since,omitempty"`
	Error  string     `json:"error,omitempty"`
}

// Child is a child of a policy: a priority, a locality or an endpoint.
type Child struct {
	Name string `json:"name"`
	// Title is what people call it, where that is not its name.
	Title string     `json:"title,omitempty"`
	State string     `json:"state"`
	Since *time.Time `json:"since,omitempty"`
	// Error is its last error, even if it is over, and ErrorAt when it was reported last.
	Error   string     `json:"error,omitempty"`
	ErrorAt *time.Time `json:"error_at,omitempty"`
	InUse   bool       `json:"in_use,omitempty"`
	// Why says why a priority is not in use, or what it waits for.
	Why string `json:"why,omitempty"`
	// Addresses are those of an endpoint with several.
	Addresses []string `json:"addresses,omitempty"`
	Weight    uint32   `json:"weight,omitempty"`
	// Share is the part of the channel's calls that it should get now.
	Share float64 `json:"share"`
	// Scheduled is how many calls its policy's schedule gave it.
	Scheduled uint64 `json:"scheduled,omitempty"`
	Calls     *Calls `json:"calls,omitempty"`
	// Recent is what became of its last calls.
	Recent *Recent `json:"recent,omitempty"`
	// Ejected says in words what ejected an endpoint, and for how long.
	Ejected string `json:"ejected,omitempty"`
	// EjectedBy is the algorithm, and EjectedUntil when its time is over.
	EjectedBy    string     `json:"ejected_by,omitempty"`
	EjectedUntil *time.Time `json:"ejected_until,omitempty"`
	Below        *Policy    `json:"below,omitempty"`

	order int  // of an endpoint among its kind: what is wrong comes first
	open  bool // unfolded on the page
	tally tally
}

// tally counts endpoints and their calls, those that are folded among them.
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

// Calls are those of an endpoint since it was first used.
type Calls struct {
	Started  uint64 `json:"started"`
	InFlight uint64 `json:"in_flight"`
	Failed   uint64 `json:"failed"`
}
