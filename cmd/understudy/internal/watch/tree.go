package watch

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/understudy-lb/understudy/internal/page"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

type renderer struct {
	page    *page.Page
	columns int
	detail  detail
	lines   []line
}

const (
	stateCells         = 25 // wide enough for TRANSIENT FAILURE and a duration
	shareCells         = 7
	barCells           = 10
	maxDepth           = 8  // number of levels of the tree
	minDurationColumns = 72 // a narrower terminal shows no durations
	minBarColumns      = 110
)

func (p *renderer) text(t tone, indent, text string, maxLines int) {
	for _, l := range wrap(indent+text, p.columns, maxLines, indent+"  ") {
		p.lines = append(p.lines, newLine(t, l))
	}
}

func (p *renderer) channel(c *page.Channel) {
	p.headline(c)
	if c.Tree != nil && p.detail.priorities {
		p.lines = append(p.lines, nil)
		p.tree(c)
	}
	if p.detail.events == 0 {
		return
	}
	if len(c.Sources) > 0 {
		p.lines = append(p.lines, nil)
	}
	for _, s := range c.Sources {
		p.source(s)
	}
	for i, e := range c.Events {
		if i == p.detail.events {
			break
		}
		if i == 0 {
			p.lines = append(p.lines, nil, newLine(toneFaint, "Last events"))
		}
		p.text(tonePlain, "  ", e.Time.Local().Format("15:04:05")+" "+e.Text, 3)
	}
}

func (p *renderer) tree(c *page.Channel) {
	if c.Tree != nil && p.detail.priorities {
		p.policy(c.Tree, "  ", append(slices.Clone(c.Why), c.InUse+": "+c.WhyInUse))
	}
}

func (p *renderer) source(s page.Source) {
	text := "Source"
	if s.Name != "" {
		text += " " + s.Name
	}
	text += ": " + s.State
	if s.Answered != nil {
		text += " " + ago(s.Answered, p.page.Time) + " ago"
	}
	if s.Version != "" {
		text += " with version " + s.Version
	}
	text += fmt.Sprintf(", %s, %s", plural(s.Endpoints, "endpoint"), printable.Count(s.Priorities, "priority", "priorities"))
	t := toneFaint
	switch {
	case s.Stale(): // the headline shows the error
		t, text = toneBad, text+"; failing now"
	case s.Error != "":
		t, text = toneBad, text+": "+s.Error
	case s.LastError != "" && s.LastErrorAt != nil:
		text += "; last error " + ago(s.LastErrorAt, p.page.Time) + " ago: " + s.LastError
	}
	p.text(t, "", text, 2)
}

// policy appends the lines for the children of a policy. It omits the reasons in shownReasons,
// which other lines already show.
func (p *renderer) policy(policy *page.Policy, indent string, shownReasons []string) {
	if len(indent) > 2*maxDepth {
		return
	}
	if policy.BusySince != nil {
		p.text(toneBad, indent, "Busy for "+ago(policy.BusySince, p.page.Time)+". Below is the last known state.", 2)
	}
	for _, note := range policy.Notes {
		p.text(tonePlain, indent, note, 2)
	}
	if len(policy.Children) == 0 && policy.Error != "" && !slices.Contains(shownReasons, policy.Error) {
		p.text(tonePlain, indent, policy.Error, 2)
	}
	if !hasNestedPolicies(policy) {
		p.endpoints(policy, indent)
		return
	}
	if policy.Policy != "priority" && !p.detail.localities {
		return
	}
	for _, child := range policy.Children {
		p.branch(child, indent, shownReasons)
	}
	if len(policy.Folded) > 0 {
		p.lines = append(p.lines, newLine(toneFaint, indent+"and "+formatCounts(policy.Folded)+" more"))
	}
}

func (p *renderer) branch(child *page.Child, indent string, shownReasons []string) {
	below := child.Below
	for depth := 0; below != nil && len(below.Children) == 1 && below.Children[0].Below != nil && depth < maxDepth; depth++ {
		below = below.Children[0].Below // skip a single locality, whose line would repeat that of its priority
	}
	counts := make(map[string]int)
	countStates(child.Below, counts, 0)
	p.row(child, indent, readySummary(counts))
	if child.Why != "" && child.Why != child.State && !slices.Contains(shownReasons, title(child)+": "+child.Why) {
		p.text(toneFaint, indent+"  ", child.Why, 2)
	}
	if below != nil && (p.detail.localities || hasNestedPolicies(below)) {
		p.policy(below, indent+"  ", shownReasons)
	}
}

// endpoints appends a row for each endpoint, up to the limit in p.detail, and a line with the
// number of the remaining endpoints.
func (p *renderer) endpoints(policy *page.Policy, indent string) {
	shown := policy.Children
	rest := make(map[string]int)
	for state, n := range policy.Folded {
		rest[state] = n
	}
	if len(shown) > p.detail.rows {
		for _, child := range shown[p.detail.rows:] {
			rest[child.State]++
		}
		shown = shown[:p.detail.rows]
	}
	for _, child := range shown {
		p.row(child, indent, endpointRemarks(child))
	}
	if len(rest) == 0 {
		return
	}
	text := formatCounts(rest)
	if len(shown) > 0 {
		text = "and " + text + " more"
	}
	p.lines = append(p.lines, newLine(toneFaint, indent+text))
}

// row appends the line of a child: its name, state and share, followed by remarks.
func (p *renderer) row(child *page.Child, indent, remarks string) {
	state, since := stateCells, child.Since
	if p.columns < minDurationColumns {
		state, since = len("TRANSIENT FAILURE "), nil
	}
	name := min(44, max(minColumns, p.columns-state-shareCells-22))
	prefix, t := indent, tonePlain
	if child.InUse {
		prefix, t = indent[:len(indent)-2]+"> ", toneStrong
	}
	l := line(nil).add(t, truncate(prefix+title(child), name-1)).padTo(name)
	l = append(l, badge(child.State, since, p.page.Time)...).padTo(name + state)
	share := percent(child.Share)
	if child.State == "TRANSIENT_FAILURE" {
		share = "-"
	}
	l = l.add(tonePlain, strings.Repeat(" ", max(0, shareCells-cells(share)))+share).add(tonePlain, "  ")
	if p.columns >= minBarColumns {
		filled := min(barCells, max(0, int(child.Share*barCells+0.5)))
		l = l.add(toneGood, strings.Repeat("█", filled)).add(toneFaint, strings.Repeat("·", barCells-filled)).add(tonePlain, "  ")
	}
	t = tonePlain
	if child.Ejected != "" {
		t = toneBad
	}
	if space := p.columns - l.cells(); cells(remarks) > space && child.Calls != nil {
		remarks = truncate(shortRemarks(child), max(1, space))
	}
	p.lines = append(p.lines, l.add(t, remarks))
}

func endpointRemarks(child *page.Child) string {
	var parts []string
	if child.Ejected != "" {
		parts = append(parts, child.Ejected)
	}
	if child.State != "READY" && child.Error != "" {
		parts = append(parts, child.Error)
	}
	if c := child.Calls; c != nil && c.Started > 0 {
		parts = append(parts, strconv.FormatUint(c.Started, 10)+" calls")
		if c.Failed > 0 {
			parts = append(parts, strconv.FormatUint(c.Failed, 10)+" failed")
		}
		if c.InFlight > 0 {
			parts = append(parts, strconv.FormatUint(c.InFlight, 10)+" in flight")
		}
	}
	return strings.Join(parts, ", ")
}

// shortRemarks returns the remarks about an endpoint for a narrow terminal. The counts of calls
// come first, because the line may be truncated.
func shortRemarks(child *page.Child) string {
	var parts []string
	switch c := child.Calls; {
	case c.Failed > 0:
		parts = append(parts, fmt.Sprintf("%d/%d failed", c.Failed, c.Started))
	case child.State == "READY" && c.Started > 0:
		parts = append(parts, plural(int(min(c.Started, math.MaxInt)), "call"))
	}
	if child.Ejected != "" {
		parts = append(parts, child.Ejected)
	}
	if child.State != "READY" && child.Error != "" {
		parts = append(parts, child.Error)
	}
	return strings.Join(parts, ", ")
}

func title(child *page.Child) string {
	switch {
	case child.Title != "":
		return child.Title
	case child.Name == "/":
		return "no locality"
	}
	return child.Name
}

func hasNestedPolicies(p *page.Policy) bool {
	return slices.ContainsFunc(p.Children, func(c *page.Child) bool { return c.Below != nil })
}
