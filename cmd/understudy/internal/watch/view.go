package watch

import (
	"fmt"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/internal/debugpage"
	"github.com/understudy-lb/understudy/internal/printable"
)

const narrowest = 20 // columns; a narrower terminal shows only the left part

type view struct {
	page   *debugpage.Page
	lost   error // why the page is unreachable, or nil
	since  time.Time
	source string // URL of the page, or "" for a channel of this process
	calls  *tally
	now    time.Time
}

// detail limits how much of a channel the view shows.
type detail struct {
	rows       int
	localities bool
	priorities bool
	events     int
}

// details has the possible details, the largest first. The view uses the first one that fits.
var details = []detail{
	{rows: 20, localities: true, priorities: true, events: 8},
	{rows: 20, localities: true, priorities: true, events: 4},
	{rows: 10, localities: true, priorities: true, events: 4},
	{rows: 10, localities: true, priorities: true, events: 2},
	{rows: 5, localities: true, priorities: true, events: 2},
	{rows: 2, localities: true, priorities: true, events: 2},
	{localities: true, priorities: true, events: 2},
	{priorities: true, events: 2},
	{priorities: true},
	{},
}

func (v *view) render(columns, rows int) []line {
	columns = max(columns, narrowest)
	var lines []line
	for _, d := range details {
		if lines = v.lines(columns, d); len(lines) <= rows {
			return lines
		}
	}
	if rows < 1 {
		return nil
	}
	return append(lines[:rows-1], say(faint, fmt.Sprintf("and %d lines more: the terminal is too small", len(lines)-rows+1)))
}

func (v *view) lines(columns int, d detail) (lines []line) {
	if v.source != "" {
		lines = append(lines, say(faint, cut(v.source, columns)))
	}
	if v.lost != nil {
		for _, text := range wrap(v.lostText(), columns, 3, "  ") {
			lines = append(lines, say(bad, text))
		}
	}
	if len(lines) > 0 {
		lines = append(lines, nil)
	}
	switch {
	case v.page == nil:
		return lines
	case len(v.page.Channels) == 0:
		return append(lines, say(plain, "There is no channel whose policies are Understudy's."))
	}
	for i, c := range v.page.Channels {
		if i > 0 {
			lines = append(lines, nil)
		}
		p := picture{page: v.page, columns: columns, detail: d}
		p.channel(c)
		lines = append(lines, p.lines...)
	}
	return append(lines, v.calls.lines(columns, v.now)...)
}

// lostText says for how long the page has been unreachable, and why.
func (v *view) lostText() string {
	text := fmt.Sprintf("Not reached for %s, trying again: %v.", printable.Duration(v.now.Sub(v.since)), v.lost)
	if v.page != nil {
		text += " What follows is what it looked like before."
	}
	return text
}

func (p *picture) headline(c *debugpage.Channel) {
	state := badge(c.State, c.Since, p.page.Time)
	name := line(nil).add(strong, cut(c.Label(), max(narrowest, p.columns-state.cells()-2)))
	p.lines = append(p.lines, append(name.fill(p.columns-state.cells()), state...))
	since := c.SaidSince()
	long, t := "", toneOf(c.State)
	if since != nil {
		long = ago(since, p.page.Time)
	}
	if c.Failing() {
		t = bad
	}
	p.text(t, "", c.SaidFor(long), 3)
	for _, why := range c.Reasons() {
		p.text(plain, "  ", why, 3)
	}
	for _, text := range c.Stale(p.page.Time) {
		p.text(bad, "  ", text, 4)
	}
}

func ago(t *time.Time, now time.Time) string {
	return printable.Duration(max(0, now.Sub(*t)))
}

func badge(state string, since *time.Time, now time.Time) line {
	l := say(toneOf(state), strings.ReplaceAll(state, "_", " "))
	if since != nil {
		l = l.add(faint, " "+ago(since, now))
	}
	return l
}

func toneOf(state string) tone {
	switch state {
	case "READY":
		return good
	case "CONNECTING":
		return waiting
	case "TRANSIENT_FAILURE":
		return bad
	}
	return plain
}
