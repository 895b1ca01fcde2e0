package page

import (
	"fmt"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/internal/core/share"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Page is the content of the debug page, in HTML and JSON. docs/debug.md describes the fields. Text
// from outside is truncated and escaped.
type Page struct {
	Time time.Time `json:"time"`
	// Started is the start time of the process. Channel IDs are unique within a process.
	Started  time.Time  `json:"started"`
	Channels []*Channel `json:"channels"`
}

// Channel describes one channel.
type Channel struct {
	ID     uint64 `json:"id"`
	Target string `json:"target"`
	// Twin is set if another channel on the page has the same target.
	Twin bool `json:"twin,omitempty"`
	// State is the state of the root policy. It is IDLE for an idle channel, and CONNECTING for a
	// channel without policies.
	State string     `json:"state"`
	Since *time.Time `json:"since,omitempty"`
	// Idle is set if the channel is idle. Tree then shows its last policies.
	Idle bool `json:"idle,omitempty"`
	// InUse is the name of the priority that gets the calls, or "" if there is none.
	InUse      string     `json:"in_use,omitempty"`
	InUseSince *time.Time `json:"in_use_since,omitempty"`
	// Why tells of each higher priority why it is not in use or, if none is, why calls fail. If the
	// priority in use has a problem, Why also tells those of the lower ones.
	Why      []string `json:"why,omitempty"`
	WhyInUse string   `json:"why_in_use,omitempty"`
	// Cause is why the priority in use takes only the share Takes of the calls, such as "full". Others
	// are the priorities that take the others. Refused is the share of the calls that none takes.
	Cause   string   `json:"cause,omitempty"`
	Takes   float64  `json:"takes,omitempty"`
	Others  []string `json:"others,omitempty"`
	Refused float64  `json:"refused,omitempty"`
	Recent  *Recent  `json:"recent,omitempty"`
	Sources []Source `json:"sources,omitempty"`
	Tree    *Policy  `json:"tree,omitempty"`
	Events  []Event  `json:"events,omitempty"`
}

// Label is the target, with the channel's ID if another channel has the same target.
func (c *Channel) Label() string {
	if c.Twin {
		return fmt.Sprintf("%s (channel %d)", c.Target, c.ID)
	}
	return c.Target
}

// Headline returns a sentence about where the channel's calls go, such as "Calls go to p0 us-east,
// 20/s."
func (c *Channel) Headline() string { return c.HeadlineFor("") }

// HeadlineFor is like Headline, but the sentence also contains the duration unless it is "", as in
// "Calls go to p0 us-east (for 11 s), 20/s, all failing: INTERNAL."
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

// HeadlineSince is when what Headline says began, or nil if we do not know.
func (c *Channel) HeadlineSince() *time.Time {
	if c.State != "READY" {
		return c.Since
	}
	return c.InUseSince
}

// Announcement is Headline without the numbers that change every second: a screen reader would read
// them out.
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

// Failing is true if at least half of the recent calls failed.
func (c *Channel) Failing() bool { return c.takesCalls() && c.Recent.Failing() }

// Alarming is true if at least half of the recent calls failed, if calls are refused, or if no
// priority can take calls.
func (c *Channel) Alarming() bool {
	return c.Failing() || c.Refused > 0 || !c.Idle && c.State == "TRANSIENT_FAILURE"
}

// Load is "shed" if calls are refused, "full" if the priority in use takes only some of the calls
// because of load, and otherwise "".
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

// Reasons has a line for the problem of the priority in use, if there is one, and one for each
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

// Elsewhere is true if a priority is in use, so that Why is about the others.
func (c *Channel) Elsewhere() bool {
	return c.InUse != "" && c.State != "TRANSIENT_FAILURE" && !c.Idle
}

// Source describes one source of a channel.
type Source struct {
	Name  string `json:"name,omitempty"`
	State string `json:"state"`
	// Trying describes what the source is waiting for. It is "" after the first answer or error.
	Trying   string     `json:"trying,omitempty"`
	Version  string     `json:"version,omitempty"`
	Answered *time.Time `json:"answered,omitempty"`
	// Error is the current error, or "". LastError is the last error, even if the source has
	// recovered, and LastErrorAt is its time.
	Error       string     `json:"error,omitempty"`
	LastError   string     `json:"last_error,omitempty"`
	LastErrorAt *time.Time `json:"last_error_at,omitempty"`
	// Notes lists the fields of the answer that have no effect.
	Notes []string `json:"notes,omitempty"`
	// ErrorSince is the time at which the current error began. Confirmed is the time at which the
	// endpoints in use were last confirmed.
	ErrorSince *time.Time `json:"error_since,omitempty"`
	Confirmed  *time.Time `json:"confirmed,omitempty"`
	Endpoints  int        `json:"endpoints"`
	Priorities int        `json:"priorities"`
}

// Event is one line of the history of a channel.
type Event struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

// Policy describes a policy and its children.
type Policy struct {
	Policy string     `json:"policy"`
	State  string     `json:"state,omitempty"`
	Since  *time.Time `json:"since,omitempty"`
	// BusySince is set if the policy has been busy for at least a second. The other fields then
	// describe its earlier state.
	BusySince *time.Time `json:"busy_since,omitempty"`
	Error     string     `json:"error,omitempty"`
	// Through lists the policies with only one child, such as drop, that are directly above this
	// policy, from top to bottom.
	Through []Layer `json:"through,omitempty"`
	// Notes contains remarks on the policy, such as which calls it drops.
	Notes    []string `json:"notes,omitempty"`
	Children []*Child `json:"children,omitempty"`
	// Folded counts the children that the page omits, by state.
	Folded map[string]int `json:"folded,omitempty"`

	refused float64 // the share of the channel's calls that no priority takes
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
	// Error is the last error of the child, even if the child has recovered. ErrorAt is its time.
	Error   string     `json:"error,omitempty"`
	ErrorAt *time.Time `json:"error_at,omitempty"`
	// NextAttempt is the latest time of the next attempt to connect to an endpoint.
	NextAttempt *time.Time `json:"next_attempt_by,omitempty"`
	InUse       bool       `json:"in_use,omitempty"`
	// Why is the reason why a priority is not in use, or what it is waiting for.
	Why string `json:"why,omitempty"`
	// Cause is why a READY priority takes only some of its calls, such as "full".
	Cause     string   `json:"cause,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	Weight    uint32   `json:"weight,omitempty"`
	// Share is the share of the channel's calls that the child should currently get, from 0 to 1.
	Share float64 `json:"share"`
	// Scheduled is the number of calls that the parent's scheduler has assigned to the child.
	Scheduled uint64  `json:"scheduled,omitempty"`
	Calls     *Calls  `json:"calls,omitempty"`
	Recent    *Recent `json:"recent,omitempty"`
	// Ejected describes why and for how long the endpoint is ejected, or is "".
	Ejected string `json:"ejected,omitempty"`
	// EjectedBy is the algorithm that ejected the endpoint. EjectedUntil is the time at which the
	// ejection ends.
	EjectedBy    string     `json:"ejected_by,omitempty"`
	EjectedUntil *time.Time `json:"ejected_until,omitempty"`
	Below        *Policy    `json:"below,omitempty"`

	order  int  // sort key; endpoints with problems come first
	open   bool // the page shows the child expanded
	counts counts

	lowest []float64 // a priority's lowest share in each ten seconds of the last ten minutes
}

// counts also has the endpoints that the page omits.
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
