package watch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
	"github.com/understudy-lb/understudy/internal/page"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

const (
	maxSiblings  = 10 // we list this many children of a policy and count the rest
	maxTreeLines = 60
	maxEvents    = 4 // per channel, on the screen
)

// sanitize makes sure that names and errors from elsewhere can't control the terminal.
func sanitize(text string) string { return printable.Line(text, 500) }

func sentences(c *page.Channel, now time.Time) []string {
	texts := append(append([]string{c.Headline()}, c.Reasons()...), c.Stale(now)...)
	for i, text := range texts {
		texts[i] = strings.TrimSuffix(sanitize(text), ".") + "."
	}
	return texts
}

func tree(c *page.Channel, now time.Time) []string {
	t := &treeText{now: now}
	t.policy(c.Tree, "  ")
	lines := append(t.notes, strings.FieldsFunc(table.Format(t.rows), func(r rune) bool { return r == '\n' })...)
	if more := len(lines) - maxTreeLines; more > 0 {
		lines = append(lines[:maxTreeLines], fmt.Sprintf("  and %d more lines", more))
	}
	return lines
}

type treeText struct {
	now   time.Time
	notes []string
	rows  [][]string
}

func (t *treeText) policy(p *page.Policy, indent string) {
	if p == nil {
		return
	}
	if p.BusySince != nil {
		t.notes = append(t.notes, "  Busy for "+ago(p.BusySince, t.now)+". Below is the last known state.")
	}
	for _, note := range p.Notes {
		t.notes = append(t.notes, "  "+sanitize(note))
	}
	shown, more := p.Children[:min(len(p.Children), maxSiblings)], make(map[string]int)
	maps.Copy(more, p.Folded)
	for _, child := range p.Children[len(shown):] {
		more[child.State]++
	}
	for _, child := range shown {
		t.child(child, indent)
	}
	for _, state := range slices.Sorted(maps.Keys(more)) {
		t.rows = append(t.rows, []string{fmt.Sprintf("%sand %d more", indent, more[state]), sanitize(state), "", ""})
	}
}

func (t *treeText) child(child *page.Child, indent string) {
	name, state, share := cmp.Or(child.Title, child.Name), child.State, "-"
	if child.InUse {
		indent = indent[2:] + "> "
	}
	if child.Since != nil {
		state += " " + ago(child.Since, t.now)
	}
	if child.State != "TRANSIENT_FAILURE" {
		share = printable.Percent(min(1, max(0, child.Share))) + " %"
	}
	t.rows = append(t.rows, []string{indent + sanitize(name), sanitize(state), share, sanitize(remarks(child))})
	below := child.Below
	if below != nil && len(below.Children) == 1 && below.Children[0].Below != nil {
		below = below.Children[0].Below // if there's just one locality, its line would only repeat the priority's
	}
	t.policy(below, "  "+strings.Repeat(" ", len(indent)))
}

func remarks(child *page.Child) string {
	calls, why := "", child.Why
	if c := child.Calls; c != nil && c.Started > 0 {
		calls = fmt.Sprintf("%d of %d calls failed", c.Failed, c.Started)
	}
	if why == "" && child.State != "READY" {
		why = child.Error
	}
	if why == child.State {
		why = ""
	}
	return strings.Join(slices.DeleteFunc([]string{child.Ejected, why, calls}, func(s string) bool { return s == "" }), ", ")
}

func ago(t *time.Time, now time.Time) string { return printable.Duration(max(0, now.Sub(*t))) }

func (f *follower) screen(now time.Time, columns, rows int) string {
	lines := []string{strings.TrimSpace(f.url + "  " + now.Local().Format("15:04:05") + ", Ctrl-C ends"), ""}
	if f.err != nil {
		lines = append(lines, fmt.Sprintf("Not reached for %s, trying again: %v", ago(&f.errSince, now), f.err))
	}
	if f.page != nil {
		for _, c := range f.page.Channels {
			lines = append(lines, channelLines(c, f.page.Time, columns)...)
		}
	}
	if f.calls != nil {
		lines = append(lines, f.lastCounts.describe()+" "+f.lastCounts.LastError)
	}
	if len(lines) > rows {
		lines = append(lines[:max(0, rows-1)], "… the terminal is too small for all lines")
	}
	for i, l := range lines {
		lines[i] = printable.Text(l)
		if runes := []rune(lines[i]); len(runes) > columns {
			lines[i] = string(runes[:columns-1]) + "…"
		}
	}
	return strings.Join(lines, "\n")
}

func channelLines(c *page.Channel, now time.Time, columns int) []string {
	lines := []string{sanitize(c.Label())}
	for _, text := range sentences(c, now) {
		for part := range slices.Chunk([]rune(text), columns) {
			lines = append(lines, string(part))
		}
	}
	lines = append(lines, tree(c, now)...)
	for _, e := range c.Events[:min(len(c.Events), maxEvents)] {
		lines = append(lines, e.Time.Local().Format("15:04:05")+" "+sanitize(e.Text))
	}
	return append(lines, "")
}
