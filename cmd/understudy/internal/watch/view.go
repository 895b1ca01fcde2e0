package watch

import (
	"fmt"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/internal/page"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

const minColumns = 20 // columns of the view; a narrower terminal shows only its left part

type view struct {
	page          *page.Page
	fetchErr      error // error of the last fetch, or nil
	fetchErrSince time.Time
	pageURL       string // URL of the page, or "" for a channel of this process
	calls         *prober
	now           time.Time
}

// detail limits how much of a channel the view shows.
type detail struct {
	rows       int
	localities bool
	priorities bool
	events     int
}

// detailLevels lists the possible details, beginning with the most detailed. The view uses the
// first level that fits into the terminal.
var detailLevels = []detail{
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
	columns = max(columns, minColumns)
	var lines []line
	for _, d := range detailLevels {
		if lines = v.lines(columns, d); len(lines) <= rows {
			return lines
		}
	}
	if rows < 1 {
		return nil
	}
	return append(lines[:rows-1], newLine(toneFaint, fmt.Sprintf("and %d lines more: the terminal is too small", len(lines)-rows+1)))
}

func (v *view) lines(columns int, d detail) (lines []line) {
	if v.pageURL != "" {
		lines = append(lines, newLine(toneFaint, truncate(v.pageURL, columns)))
	}
	if v.fetchErr != nil {
		for _, text := range wrap(v.unreachableText(), columns, 3, "  ") {
			lines = append(lines, newLine(toneBad, text))
		}
	}
	if len(lines) > 0 {
		lines = append(lines, nil)
	}
	switch {
	case v.page == nil:
		return lines
	case len(v.page.Channels) == 0:
		return append(lines, newLine(tonePlain, "No channel uses Understudy's policies."))
	}
	for i, c := range v.page.Channels {
		if i > 0 {
			lines = append(lines, nil)
		}
		p := renderer{page: v.page, columns: columns, detail: d}
		p.channel(c)
		lines = append(lines, p.lines...)
	}
	return append(lines, v.calls.render(columns, v.now)...)
}

// unreachableText says for how long the page has been unreachable, and why.
func (v *view) unreachableText() string {
	text := fmt.Sprintf("Not reached for %s, trying again: %v.", printable.Duration(v.now.Sub(v.fetchErrSince)), v.fetchErr)
	if v.page != nil {
		text += " Below is the last known state."
	}
	return text
}

func (p *renderer) headline(c *page.Channel) {
	state := badge(c.State, c.Since, p.page.Time)
	name := line(nil).add(toneStrong, truncate(c.Label(), max(minColumns, p.columns-state.cells()-2)))
	p.lines = append(p.lines, append(name.padTo(p.columns-state.cells()), state...))
	since := c.HeadlineSince()
	duration, t := "", stateTone(c.State)
	if since != nil {
		duration = ago(since, p.page.Time)
	}
	if c.Failing() {
		t = toneBad
	}
	p.text(t, "", c.HeadlineFor(duration), 3)
	for _, reason := range c.Reasons() {
		p.text(tonePlain, "  ", reason, 3)
	}
	for _, text := range c.Stale(p.page.Time) {
		p.text(toneBad, "  ", text, 4)
	}
}

func ago(t *time.Time, now time.Time) string {
	return printable.Duration(max(0, now.Sub(*t)))
}

func badge(state string, since *time.Time, now time.Time) line {
	l := newLine(stateTone(state), strings.ReplaceAll(state, "_", " "))
	if since != nil {
		l = l.add(toneFaint, " "+ago(since, now))
	}
	return l
}

func stateTone(state string) tone {
	switch state {
	case "READY":
		return toneGood
	case "CONNECTING":
		return toneWaiting
	case "TRANSIENT_FAILURE":
		return toneBad
	}
	return tonePlain
}
