package watch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/page"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Event is one line of the output with -o json. docs/watch.md describes its fields.
type Event struct {
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"`
	Channel uint64    `json:"channel,omitempty"`
	Target  string    `json:"target,omitempty"`
	Text    string    `json:"text"`
	// State, InUse, Why, Sources and Tree describe a channel. They are set only if Kind is
	// kindStatus.
	State   string        `json:"state,omitempty"`
	InUse   string        `json:"in_use,omitempty"`
	Why     []string      `json:"why,omitempty"`
	Sources []page.Source `json:"sources,omitempty"`
	Tree    *page.Policy  `json:"tree,omitempty"`
	// Calls is set only if Kind is kindCalls.
	Calls *CallCounts `json:"calls,omitempty"`

	channel *page.Channel
}

const (
	kindStatus    = "status" // the status of a channel, at the beginning and after each change
	kindEvent     = "event"
	kindGone      = "gone"
	kindLost      = "lost"
	kindBack      = "back"
	kindRestarted = "restarted" // the program that serves the page was restarted
	kindCalls     = "calls"     // calls begin to fail, calls succeed again, or the watch ends
)

// follower compares each debug page with the previous page, and returns the differences as events.
type follower struct {
	view     *view
	seenPage bool
	channels map[uint64]*trackedChannel

	callsFailing bool
	failingSince time.Time
	lastCounts   CallCounts
}

type trackedChannel struct {
	target, status string
	lastEvent      time.Time
}

// observe processes the next page, or the error from fetching it, and returns the events since the
// previous call.
func (f *follower) observe(now time.Time, page *page.Page, err error) (events []Event) {
	v := f.view
	v.now = now
	if err != nil {
		err = errors.New(shell.Brief(err))
	}
	switch {
	case err != nil && v.fetchErr == nil:
		v.fetchErr, v.fetchErrSince = err, now
		text := fmt.Sprintf("not reached, trying again: %v", err)
		events = append(events, Event{Time: now, Kind: kindLost, Text: printable.Line(text, maxTextBytes)})
	case err != nil:
		v.fetchErr = err
	default:
		if v.fetchErr != nil {
			text := "reached again, after " + printable.Duration(now.Sub(v.fetchErrSince))
			events = append(events, Event{Time: now, Kind: kindBack, Text: text})
		}
		if v.page != nil && !page.Started.Equal(v.page.Started) {
			events = append(events, Event{Time: now, Kind: kindRestarted, Text: "the program was restarted"})
			f.channels = nil
		}
		v.page, v.fetchErr = page, nil
		events = append(events, f.compare(page)...)
	}
	return append(events, f.observeCalls(now)...)
}

func (f *follower) compare(page *page.Page) (events []Event) {
	known := f.channels
	f.channels = make(map[uint64]*trackedChannel)
	for _, c := range page.Channels {
		tracked := known[c.ID]
		if tracked == nil || tracked.target != c.Target {
			tracked = &trackedChannel{target: c.Target}
			if !f.seenPage && f.view.pageURL != "" && len(c.Events) > 0 {
				tracked.lastEvent = c.Events[0].Time // do not report events from before the watch
			}
		}
		f.channels[c.ID] = tracked
		for _, e := range slices.Backward(c.Events) {
			if e.Time.After(tracked.lastEvent) {
				tracked.lastEvent = e.Time
				events = append(events, Event{Time: e.Time, Kind: kindEvent, Channel: c.ID, Target: sanitize(c.Target), Text: sanitize(e.Text)})
			}
		}
		if status := strings.Join([]string{c.State, c.InUse, c.Headline(), staleSources(c)}, "\n"); status != tracked.status {
			tracked.status = status
			events = append(events, statusOf(c, page.Time))
		}
	}
	for id, tracked := range known {
		if f.channels[id] == nil {
			events = append(events, Event{Time: page.Time, Kind: kindGone, Channel: id, Target: sanitize(tracked.target), Text: "the channel was closed, or is no longer listed"})
		}
	}
	f.seenPage = true
	return events
}

// staleSources returns the names of the sources that fail while the channel still uses their last
// answer.
func staleSources(c *page.Channel) (names string) {
	for _, s := range c.Sources {
		if s.Stale() {
			names += "\n" + s.Name
		}
	}
	return names
}

func statusOf(c *page.Channel, now time.Time) Event {
	e := Event{
		Time: now, Kind: kindStatus, Channel: c.ID, Target: sanitize(c.Target), Text: sanitize(c.Headline()),
		State: sanitize(c.State), InUse: sanitize(c.InUse), Tree: c.Tree, channel: c,
	}
	for _, reason := range c.Why {
		e.Why = append(e.Why, sanitize(reason))
	}
	for _, s := range c.Sources {
		s.Name, s.State, s.Version, s.Error, s.LastError = sanitize(s.Name), sanitize(s.State), sanitize(s.Version), sanitize(s.Error), sanitize(s.LastError)
		e.Sources = append(e.Sources, s)
	}
	return e
}

func (e Event) message() string {
	text := e.Text
	for _, reason := range e.Why {
		if e.channel.Elsewhere() {
			reason = "Not " + reason
		}
		text += " " + strings.TrimSuffix(reason, ".") + "."
	}
	if e.channel != nil {
		for _, warning := range e.channel.Stale(e.Time) {
			text += " " + strings.TrimSuffix(warning, ".") + "."
		}
	}
	return text
}

func sanitize(text string) string { return printable.Line(text, maxTextBytes) }

func (f *follower) observeCalls(now time.Time) []Event {
	if f.view.calls == nil {
		return nil
	}
	counts := f.view.calls.snapshot()
	answered, failed := counts.Answered-f.lastCounts.Answered, counts.Failed-f.lastCounts.Failed
	event := Event{Time: now, Kind: kindCalls, Calls: &counts}
	switch {
	case failed > 0 && !f.callsFailing:
		f.callsFailing, f.failingSince = true, now
		event.Text = "calls fail: " + counts.LastError
	case failed == 0 && answered > 0 && f.callsFailing:
		f.callsFailing = false
		event.Text = "calls are answered again, after " + printable.Duration(now.Sub(f.failingSince))
	default:
		f.lastCounts = counts
		return nil
	}
	f.lastCounts = counts
	return []Event{event}
}

func (f *follower) finalEvents(now time.Time) []Event {
	if f.view.calls == nil {
		return nil
	}
	c := f.view.calls.snapshot()
	text := fmt.Sprintf("of %d calls, %d were answered and %d failed", c.Sent, c.Answered, c.Failed)
	return []Event{{Time: now, Kind: kindCalls, Text: text, Calls: &c}}
}

// checkHealth returns an error if the page is unreachable, or if a channel is neither READY nor
// IDLE.
func (v *view) checkHealth() error {
	switch {
	case v.fetchErr != nil:
		return Failure{fmt.Errorf("%s: not reached: %w", v.pageURL, v.fetchErr)}
	case v.page == nil:
		return nil
	}
	for _, c := range v.page.Channels {
		if c.State != "READY" && c.State != "IDLE" && !c.Idle {
			reason := ""
			if len(c.Why) > 0 {
				reason = ": " + strings.Join(c.Why, "; ")
			}
			return fmt.Errorf("%w: %s: %s%s", ErrUnavailable, c.Target, c.State, reason)
		}
	}
	return nil
}
