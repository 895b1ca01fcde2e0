package page

import (
	"fmt"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/internal/core/share"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Page is the content of the debug page, for both HTML and JSON. See docs/debug.md for the fields.
// Text from outside is truncated and escaped.
type Page struct {
	Time time.Time `json:"time"`
	// Started is when the process started. Channel IDs are only unique within a process.
	Started  time.Time  `json:"started"`
	Channels []*Channel `json:"channels"`
}

type Channel struct {
	ID     uint64 `json:"id"`
	Target string `json:"target"`
	// Twin is set if another channel on the page has the same target.
	Twin bool `json:"twin,omitempty"`
	// State is the state of the root policy. It's IDLE for an idle channel, and CONNECTING if there
	// aren't any policies yet.
	State string     `json:"state"`
	Since *time.Time `json:"since,omitempty"`
	// Idle is set if the channel is idle. Tree then shows the policies it had last.
	Idle bool `json:"idle,omitempty"`
	// InUse is the name of the priority that gets the calls, or "" if there is none.
	InUse      string     `json:"in_use,omitempty"`
	InUseSince *time.Time `json:"in_use_since,omitempty"`
	// Why explains why each of the higher priorities isn't in use or, if no priority is, why calls
	// fail. If there's a problem with the priority in use, the problems of lower ones are included
	// too.
	Why      []string `json:"why,omitempty"`
	WhyInUse string   `json:"why_in_use,omitempty"`
	// Cause says why the priority in use doesn't take all calls, e.g. "full". Takes is its share of
	// them, Refused is the share that's refused, and Others are the priorities that get the rest.
	Cause   string   `json:"cause,omitempty"`
	Takes   float64  `json:"takes,omitempty"`
	Others  []string `json:"others,omitempty"`
	Refused float64  `json:"refused,omitempty"`
	Recent  *Recent  `json:"recent,omitempty"`
	Sources []Source `json:"sources,omitempty"`
	Tree    *Policy  `json:"tree,omitempty"`
	Events  []Event  `json:"events,omitempty"`
}

// Label returns the target. If another channel has the same one, we add the channel's ID.
func (c *Channel) Label() string {
	if c.Twin {
		return fmt.Sprintf("%s (channel %d)", c.Target, c.ID)
	}
	return c.Target
}

// Headline says where the channel's calls go in one sentence, e.g. "Calls go to p0 us-east, 20/s."
func (c *Channel) Headline() string { return c.HeadlineFor("") }

// HeadlineFor is like Headline, but can say how long this has been going on, e.g. "Calls go to p0
// us-east (for 11 s), 20/s, all failing: INTERNAL."
func (c *Channel) HeadlineFor(duration string) string {
	text := c.beginning(func(share float64) string { return printable.Percent(share) + " %" })
	if duration != "" && !c.Idle {
		text += " (for " + duration + ")"
	}
	if rate := c.Recent.describe(); rate != "" && c.takesCalls() && c.Refused == 0 {
		text += ", " + rate
	}
	return text + c.ending()
}

// HeadlineSince returns the time when Headline became true, or nil if we don't know.
func (c *Channel) HeadlineSince() *time.Time {
	if c.State != "READY" {
		return c.Since
	}
	return c.InUseSince
}

// Announcement is Headline without the numbers that change every second, since a screen reader
// would read out each change.
func (c *Channel) Announcement() string {
	text := c.beginning(func(float64) string { return "some" })
	switch {
	case !c.Failing() || c.Refused > 0:
	case c.Recent.Failed == c.Recent.Ended:
		text += ", " + c.Recent.failures()
	default:
		text += ", most failing: " + strings.Join(c.Recent.Codes, ", ")
	}
	return text + c.ending()
}

func (c *Channel) Failing() bool { return c.takesCalls() && c.Recent.Failing() }

func (c *Channel) Alarming() bool {
	return c.Failing() || c.Refused > 0 || !c.Idle && c.State == "TRANSIENT_FAILURE"
}

// Load returns "shed" if calls are being refused. Otherwise, it returns "full" if the priority in
// use has too much load to take all calls, or "" if there's no such problem.
func (c *Channel) Load() string {
	switch {
	case c.Refused > 0:
		return "shed"
	case c.Cause == share.Full.String() || c.Cause == share.Slow.String():
		return "full"
	}
	return ""
}

func (c *Channel) takesCalls() bool { return !c.Idle && (c.State == "READY" || c.State == "IDLE") }

func (c *Channel) ending() string {
	if c.Idle {
		return ": there are no calls and no connections. Below is the last known state."
	}
	if len(c.Others) > 0 && c.Refused == 0 {
		return ". The others go to " + strings.Join(c.Others, " and ") + "."
	}
	return "."
}

func (c *Channel) beginning(percent func(float64) string) string {
	switch {
	case c.Idle:
		return "Idle"
	case c.State == "TRANSIENT_FAILURE" && c.Tree != nil && c.Tree.Policy == "priority" && len(c.Tree.Children) > 0:
		return "No priority can take calls"
	case c.State == "TRANSIENT_FAILURE":
		return "Calls fail"
	case c.Refused > 0:
		return "Every priority is full: " + percent(c.Refused) + " of the calls are refused"
	case c.Cause != "":
		return c.InUse + " takes " + percent(c.Takes) + " of the calls: " + c.Cause
	case c.InUse != "" && c.State == "CONNECTING":
		return "Calls wait for " + c.InUse
	case c.InUse != "":
		return "Calls go to " + c.InUse
	case c.State == "CONNECTING", len(c.Why) > 0:
		return "Calls wait"
	}
	return "Calls can be sent"
}

// Reasons has one line for what's wrong with the priority in use, if anything, and one for each
// element of Why.
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

// Elsewhere reports whether some priority is in use, in which case Why is about the other ones.
func (c *Channel) Elsewhere() bool {
	return c.InUse != "" && c.State != "TRANSIENT_FAILURE" && !c.Idle
}

type Source struct {
	Name  string `json:"name,omitempty"`
	State string `json:"state"`
	// Trying is what the source is waiting for. It's "" once there has been an answer or an error.
	Trying   string     `json:"trying,omitempty"`
	Version  string     `json:"version,omitempty"`
	Answered *time.Time `json:"answered,omitempty"`
	// Error is the current error, or "". LastError and LastErrorAt stay even after the source has
	// recovered.
	Error       string     `json:"error,omitempty"`
	LastError   string     `json:"last_error,omitempty"`
	LastErrorAt *time.Time `json:"last_error_at,omitempty"`
	// Notes lists fields of the answer that have no effect.
	Notes []string `json:"notes,omitempty"`
	// ErrorSince is when the current error began. Confirmed is when the endpoints in use were last
	// confirmed.
	ErrorSince *time.Time `json:"error_since,omitempty"`
	Confirmed  *time.Time `json:"confirmed,omitempty"`
	Endpoints  int        `json:"endpoints"`
	Priorities int        `json:"priorities"`
}

type Event struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

type Policy struct {
	Policy string     `json:"policy"`
	State  string     `json:"state,omitempty"`
	Since  *time.Time `json:"since,omitempty"`
	// BusySince is set if the policy has been busy for at least a second, in which case the other
	// fields may be out of date.
	BusySince *time.Time `json:"busy_since,omitempty"`
	Error     string     `json:"error,omitempty"`
	// Through lists the policies right above this one that have just one child, e.g. drop, from top
	// to bottom.
	Through []Layer `json:"through,omitempty"`
	// Notes has remarks on the policy, e.g. which calls it drops.
	Notes    []string `json:"notes,omitempty"`
	Children []*Child `json:"children,omitempty"`
	// Folded counts children that aren't on the page, by state.
	Folded map[string]int `json:"folded,omitempty"`

	refused float64 // share of the channel's calls that no priority takes
	counts  counts
}

// Layer is a policy between a priority and its endpoints.
type Layer struct {
	Policy string     `json:"policy"`
	State  string     `json:"state,omitempty"`
	Since  *time.Time `json:"since,omitempty"`
	Error  string     `json:"error,omitempty"`
}

// Child is a priority, a locality or an endpoint.
type Child struct {
	Name string `json:"name"`
	// Title is the name in the log and in metrics, if it differs from Name.
	Title string     `json:"title,omitempty"`
	State string     `json:"state"`
	Since *time.Time `json:"since,omitempty"`
	// Error and ErrorAt are about the child's last error. They stay even after the child has
	// recovered.
	Error   string     `json:"error,omitempty"`
	ErrorAt *time.Time `json:"error_at,omitempty"`
	// NextAttempt is when we'll try to connect to the endpoint again, at the latest.
	NextAttempt *time.Time `json:"next_attempt_by,omitempty"`
	InUse       bool       `json:"in_use,omitempty"`
	// Why explains why a priority isn't in use, or what it's waiting for.
	Why string `json:"why,omitempty"`
	// Cause is why a READY priority only takes some of its calls, e.g. "full".
	Cause     string   `json:"cause,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	Weight    uint32   `json:"weight,omitempty"`
	// Share is the share of the channel's calls that the child should currently be getting, from 0
	// to 1.
	Share float64 `json:"share"`
	// Scheduled is how many calls the parent's scheduler has assigned to the child.
	Scheduled uint64  `json:"scheduled,omitempty"`
	Calls     *Calls  `json:"calls,omitempty"`
	Recent    *Recent `json:"recent,omitempty"`
	// Ejected says why an ejected endpoint was ejected, and for how long.
	Ejected string `json:"ejected,omitempty"`
	// EjectedBy is the algorithm that ejected the endpoint, and EjectedUntil is when the ejection
	// ends.
	EjectedBy    string     `json:"ejected_by,omitempty"`
	EjectedUntil *time.Time `json:"ejected_until,omitempty"`
	Below        *Policy    `json:"below,omitempty"`

	order  int  // for sorting, problems first
	open   bool // expanded on the page
	counts counts

	lowest []float64 // a priority's lowest share in every ten seconds of the last ten minutes
}

// Unlike the page itself, this covers all endpoints.
type counts struct {
	endpoints, ready int
	recent           recents
}

func (t *counts) add(c *Child) {
	t.endpoints += c.counts.endpoints
	t.ready += c.counts.ready
	for i := range t.recent {
		t.recent[i].Add(c.counts.recent[i])
	}
}

// Calls counts the calls of an endpoint since it was first used.
type Calls struct {
	Started  uint64 `json:"started"`
	InFlight uint64 `json:"in_flight"`
	Failed   uint64 `json:"failed"`
}
