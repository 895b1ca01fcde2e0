package watch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/internal/debugpage"
	"github.com/understudy-lb/understudy/internal/printable"
	"github.com/understudy-lb/understudy/internal/shell"
)

// Event is one line of the output with -o json. docs/watch.md describes its fields.
type Event struct {
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"`
	Channel uint64    `json:"channel,omitempty"`
	Target  string    `json:"target,omitempty"`
	Text    string    `json:"text"`
	// State, InUse, Why, Sources and Tree describe a channel. They are set for the kind "status".
	State   string             `json:"state,omitempty"`
	InUse   string             `json:"in_use,omitempty"`
	Why     []string           `json:"why,omitempty"`
	Sources []debugpage.Source `json:"sources,omitempty"`
	Tree    *debugpage.Policy  `json:"tree,omitempty"`
	// Calls is set for the kind "calls".
	Calls *Tally `json:"calls,omitempty"`

	shown *debugpage.Channel
}

const (
	kindStatus    = "status" // the priority in use, at the beginning and whenever it changes
	kindEvent     = "event"
	kindGone      = "gone"
	kindLost      = "lost"
	kindBack      = "back"
	kindRestarted = "restarted" // the page now comes from a new process
	kindCalls     = "calls"     // calls begin to fail, succeed again, or end
)

// follower compares each page with the previous one, and returns the differences as events.
type follower struct {
	view     *view
	began    bool
	channels map[uint64]*followed

	failing   bool
	failingAt time.Time
	counted   Tally
}

type followed struct {
	target, status string
	last           time.Time
}

// look takes the next page, or the error of its fetch, and returns the events since the previous
// one.
func (f *follower) look(now time.Time, page *debugpage.Page, err error) (events []Event) {
	v := f.view
	v.now = now
	if err != nil {
		err = errors.New(shell.Brief(err))
	}
	switch {
	case err != nil && v.lost == nil:
		v.lost, v.since = err, now
		text := fmt.Sprintf("not reached, trying again: %v", err)
		events = append(events, Event{Time: now, Kind: kindLost, Text: printable.Line(text, longestError)})
	case err != nil:
		v.lost = err
	default:
		if v.lost != nil {
			text := "reached, after " + printable.Duration(now.Sub(v.since))
			events = append(events, Event{Time: now, Kind: kindBack, Text: text})
		}
		if v.page != nil && !page.Started.Equal(v.page.Started) {
			events = append(events, Event{Time: now, Kind: kindRestarted, Text: "the program was started anew"})
			f.channels = nil
		}
		v.page, v.lost = page, nil
		events = append(events, f.compare(page)...)
	}
	return append(events, f.lookAtCalls(now)...)
}

func (f *follower) compare(page *debugpage.Page) (events []Event) {
	known := f.channels
	f.channels = make(map[uint64]*followed)
	for _, c := range page.Channels {
		was := known[c.ID]
		if was == nil || was.target != c.Target {
			was = &followed{target: c.Target}
			if !f.began && f.view.source != "" && len(c.Events) > 0 {
				was.last = c.Events[0].Time // events from before the watch are not reported
			}
		}
		f.channels[c.ID] = was
		for _, e := range slices.Backward(c.Events) {
			if e.Time.After(was.last) {
				was.last = e.Time
				events = append(events, Event{Time: e.Time, Kind: kindEvent, Channel: c.ID, Target: clean(c.Target), Text: clean(e.Text)})
			}
		}
		if status := strings.Join([]string{c.State, c.InUse, c.Said(), stale(c)}, "\n"); status != was.status {
			was.status = status
			events = append(events, statusOf(c, page.Time))
		}
	}
	for id, was := range known {
		if f.channels[id] == nil {
			events = append(events, Event{Time: page.Time, Kind: kindGone, Channel: id, Target: clean(was.target), Text: "the channel is closed, or forgotten"})
		}
	}
	f.began = true
	return events
}

// stale returns the names of the sources that fail while their last answer stays in use.
func stale(c *debugpage.Channel) (names string) {
	for _, s := range c.Sources {
		if s.Stale() {
			names += "\n" + s.Name
		}
	}
	return names
}

func statusOf(c *debugpage.Channel, now time.Time) Event {
	e := Event{
		Time: now, Kind: kindStatus, Channel: c.ID, Target: clean(c.Target), Text: clean(c.Said()),
		State: clean(c.State), InUse: clean(c.InUse), Tree: c.Tree, shown: c,
	}
	for _, why := range c.Why {
		e.Why = append(e.Why, clean(why))
	}
	for _, s := range c.Sources {
		s.Name, s.State, s.Version, s.Error, s.LastError = clean(s.Name), clean(s.State), clean(s.Version), clean(s.Error), clean(s.LastError)
		e.Sources = append(e.Sources, s)
	}
	return e
}

func (e Event) said() string {
	text := e.Text
	for _, why := range e.Why {
		if e.shown.Elsewhere() {
			why = "Not " + why
		}
		text += " " + strings.TrimSuffix(why, ".") + "."
	}
	if e.shown != nil {
		for _, stale := range e.shown.Stale(e.Time) {
			text += " " + strings.TrimSuffix(stale, ".") + "."
		}
	}
	return text
}

func clean(text string) string { return printable.Line(text, longestError) }

func (f *follower) lookAtCalls(now time.Time) []Event {
	if f.view.calls == nil {
		return nil
	}
	counts := f.view.calls.get()
	answered, failed := counts.Answered-f.counted.Answered, counts.Failed-f.counted.Failed
	event := Event{Time: now, Kind: kindCalls, Calls: &counts}
	switch {
	case failed > 0 && !f.failing:
		f.failing, f.failingAt = true, now
		event.Text = "calls fail: " + counts.LastError
	case failed == 0 && answered > 0 && f.failing:
		f.failing = false
		event.Text = "calls are answered again, after " + printable.Duration(now.Sub(f.failingAt))
	default:
		f.counted = counts
		return nil
	}
	f.counted = counts
	return []Event{event}
}

func (f *follower) end(now time.Time) []Event {
	if f.view.calls == nil {
		return nil
	}
	c := f.view.calls.get()
	text := fmt.Sprintf("of %d calls %d were answered and %d failed", c.Sent, c.Answered, c.Failed)
	return []Event{{Time: now, Kind: kindCalls, Text: text, Calls: &c}}
}

// unwell returns an error if the page is unreachable, or if a channel is neither READY nor IDLE.
func (v *view) unwell() error {
	switch {
	case v.lost != nil:
		return Failure{fmt.Errorf("%s: not reached: %w", v.source, v.lost)}
	case v.page == nil:
		return nil
	}
	for _, c := range v.page.Channels {
		if c.State != "READY" && c.State != "IDLE" && !c.Idle {
			why := ""
			if len(c.Why) > 0 {
				why = ": " + strings.Join(c.Why, "; ")
			}
			return fmt.Errorf("%w: %s: %s%s", ErrNotTaken, c.Target, c.State, why)
		}
	}
	return nil
}
