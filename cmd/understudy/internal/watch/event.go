package watch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/page"
)

// Event is one line of the output with -o json. See docs/watch.md for the fields.
type Event struct {
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"`
	Channel uint64    `json:"channel,omitempty"`
	Target  string    `json:"target,omitempty"`
	Text    string    `json:"text"`
	// State, InUse, Load, Why, Sources and Tree describe a channel. They're only set if Kind is
	// status.
	State   string        `json:"state,omitempty"`
	InUse   string        `json:"in_use,omitempty"`
	Load    string        `json:"load,omitempty"`
	Why     []string      `json:"why,omitempty"`
	Sources []page.Source `json:"sources,omitempty"`
	Tree    *page.Policy  `json:"tree,omitempty"`
	// Calls is only set if Kind is calls.
	Calls *CallCounts `json:"calls,omitempty"`

	channel *page.Channel
}

type follower struct {
	url      string // "" for a channel of this process
	page     *page.Page
	err      error // error of the last fetch, or nil
	errSince time.Time
	channels map[uint64]*trackedChannel
	calls    *prober // nil if we don't make calls

	failingSince time.Time // when calls began to fail, or zero
	lastCounts   CallCounts
}

type trackedChannel struct {
	target, status string
	lastEvent      time.Time
}

func (f *follower) observe(now time.Time, page *page.Page, err error) (events []Event) {
	if err != nil {
		err = errors.New(shell.Brief(err))
		if f.err == nil {
			f.errSince = now
			events = append(events, Event{Time: now, Kind: "lost", Text: fmt.Sprintf("not reached, trying again: %v", err)})
		}
		f.err = err
		return append(events, f.observeCalls(now, false)...)
	}
	if f.err != nil {
		events = append(events, Event{Time: now, Kind: "back", Text: "reached again, after " + ago(&f.errSince, now)})
	}
	if f.page != nil && !page.Started.Equal(f.page.Started) {
		events = append(events, Event{Time: now, Kind: "restarted", Text: "the program was restarted"})
		f.channels = nil
	}
	events = append(events, f.compare(page)...)
	f.page, f.err = page, nil
	return append(events, f.observeCalls(now, false)...)
}

func (f *follower) compare(page *page.Page) (events []Event) {
	known := f.channels
	f.channels = make(map[uint64]*trackedChannel)
	for _, c := range page.Channels {
		tracked := known[c.ID]
		if tracked == nil || tracked.target != c.Target {
			tracked = &trackedChannel{target: c.Target}
			if f.page == nil && f.url != "" && len(c.Events) > 0 {
				tracked.lastEvent = c.Events[0].Time // don't report what happened before we started watching
			}
		}
		f.channels[c.ID] = tracked
		for _, e := range slices.Backward(c.Events) {
			if e.Time.After(tracked.lastEvent) {
				tracked.lastEvent = e.Time
				events = append(events, Event{Time: e.Time, Kind: "event", Channel: c.ID, Target: c.Target, Text: e.Text})
			}
		}
		if status := fmt.Sprintln(c.State, c.InUse, c.Load(), c.Idle, c.Failing(), len(c.Stale(page.Time))); status != tracked.status {
			tracked.status = status
			events = append(events, Event{
				Time: page.Time, Kind: "status", Channel: c.ID, Target: c.Target, Text: c.Headline(),
				State: c.State, InUse: c.InUse, Load: c.Load(), Why: c.Why, Sources: c.Sources, Tree: c.Tree, channel: c,
			})
		}
	}
	for id, tracked := range known {
		if f.channels[id] == nil {
			events = append(events, Event{Time: page.Time, Kind: "gone", Channel: id, Target: tracked.target, Text: "the channel was closed, or is no longer listed"})
		}
	}
	return events
}

func (f *follower) observeCalls(now time.Time, final bool) []Event {
	if f.calls == nil {
		return nil
	}
	f.calls.mu.Lock()
	counts := f.calls.counts
	f.calls.mu.Unlock()
	answered, failed := counts.Answered-f.lastCounts.Answered, counts.Failed-f.lastCounts.Failed
	f.lastCounts = counts
	event := Event{Time: now, Kind: "calls", Calls: &counts}
	switch {
	case final:
		event.Text = counts.describe()
	case failed > 0 && f.failingSince.IsZero():
		f.failingSince = now
		event.Text = "calls fail: " + counts.LastError
	case failed == 0 && answered > 0 && !f.failingSince.IsZero():
		event.Text = "calls are answered again, after " + ago(&f.failingSince, now)
		f.failingSince = time.Time{}
	default:
		return nil
	}
	return []Event{event}
}

// checkHealth fails if the page is unreachable, if a channel is neither READY nor IDLE, or if all
// our calls have failed.
func (f *follower) checkHealth() error {
	if f.err != nil {
		return Failure{fmt.Errorf("%s: not reached: %w", f.url, f.err)}
	}
	if f.page == nil {
		return nil
	}
	for _, c := range f.page.Channels {
		if c.State != "READY" && c.State != "IDLE" && !c.Idle {
			return fmt.Errorf("%w: %s: %s: %s", ErrUnavailable, c.Target, c.State, strings.Join(c.Why, "; "))
		}
	}
	if c := f.lastCounts; c.Answered == 0 && c.Failed > 0 {
		return fmt.Errorf("%w: all %d calls failed, the last with %s", ErrUnavailable, c.Failed, c.LastError)
	}
	return nil
}
