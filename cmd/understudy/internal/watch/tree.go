package watch

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/understudy-lb/understudy/internal/debugpage"
	"github.com/understudy-lb/understudy/internal/printable"
)

type picture struct {
	page    *debugpage.Page
	columns int
	detail  detail
	lines   []line
}

const (
	stateCells = 25 // fits TRANSIENT FAILURE and a duration
	shareCells = 7
	barCells   = 10
	deepest    = 8  // levels of the tree
	roomy      = 72 // columns; narrower rows omit durations
	wide       = 110
)

func (p *picture) text(t tone, indent, text string, most int) {
	for _, l := range wrap(indent+text, p.columns, most, indent+"  ") {
		p.lines = append(p.lines, say(t, l))
	}
}

func (p *picture) channel(c *debugpage.Channel) {
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
			p.lines = append(p.lines, nil, say(faint, "Last events"))
		}
		p.text(plain, "  ", e.Time.Local().Format("15:04:05")+" "+e.Text, 3)
	}
}

func (p *picture) tree(c *debugpage.Channel) {
	if c.Tree != nil && p.detail.priorities {
		p.policy(c.Tree, "  ", append(slices.Clone(c.Why), c.InUse+": "+c.WhyInUse))
	}
}

func (p *picture) source(s debugpage.Source) {
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
	text += fmt.Sprintf(", %s, %s", count(s.Endpoints, "endpoint"), printable.Count(s.Priorities, "priority", "priorities"))
	t := faint
	switch {
	case s.Stale(): // the headline shows why
		t, text = bad, text+"; failing now"
	case s.Error != "":
		t, text = bad, text+": "+s.Error
	case s.LastError != "" && s.LastErrorAt != nil:
		text += "; last wrong " + ago(s.LastErrorAt, p.page.Time) + " ago: " + s.LastError
	}
	p.text(t, "", text, 2)
}

// policy appends the children of a policy. said has the reasons that the picture already shows.
func (p *picture) policy(policy *debugpage.Policy, indent string, said []string) {
	if len(indent) > 2*deepest {
		return
	}
	if policy.BusySince != nil {
		p.text(bad, indent, "Busy for "+ago(policy.BusySince, p.page.Time)+". What follows is what it looked like before.", 2)
	}
	for _, note := range policy.Notes {
		p.text(plain, indent, note, 2)
	}
	if len(policy.Children) == 0 && policy.Error != "" && !slices.Contains(said, policy.Error) {
		p.text(plain, indent, policy.Error, 2)
	}
	if !branches(policy) {
		p.endpoints(policy, indent)
		return
	}
	if policy.Policy != "priority" && !p.detail.localities {
		return
	}
	for _, child := range policy.Children {
		p.branch(child, indent, said)
	}
	if len(policy.Folded) > 0 {
		p.lines = append(p.lines, say(faint, indent+"and "+byState(policy.Folded)+" more"))
	}
}

func (p *picture) branch(child *debugpage.Child, indent string, said []string) {
	below := child.Below
	for depth := 0; below != nil && len(below.Children) == 1 && below.Children[0].Below != nil && depth < deepest; depth++ {
		below = below.Children[0].Below // a single locality would repeat the line of its priority
	}
	counts := make(map[string]int)
	countStates(child.Below, counts, 0)
	p.row(child, indent, ready(counts))
	if child.Why != "" && child.Why != child.State && !slices.Contains(said, title(child)+": "+child.Why) {
		p.text(faint, indent+"  ", child.Why, 2)
	}
	if below != nil && (p.detail.localities || branches(below)) {
		p.policy(below, indent+"  ", said)
	}
}

// endpoints appends as many endpoints as detail allows, and the number of the others.
func (p *picture) endpoints(policy *debugpage.Policy, indent string) {
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
		p.row(child, indent, about(child))
	}
	if len(rest) == 0 {
		return
	}
	text := byState(rest)
	if len(shown) > 0 {
		text = "and " + text + " more"
	}
	p.lines = append(p.lines, say(faint, indent+text))
}

// row appends the line of a child: its name, state and share, followed by about.
func (p *picture) row(child *debugpage.Child, indent, about string) {
	state, since := stateCells, child.Since
	if p.columns < roomy {
		state, since = len("TRANSIENT FAILURE "), nil
	}
	name := min(44, max(narrowest, p.columns-state-shareCells-22))
	used, t := indent, plain
	if child.InUse {
		used, t = indent[:len(indent)-2]+"> ", strong
	}
	l := line(nil).add(t, cut(used+title(child), name-1)).fill(name)
	l = append(l, badge(child.State, since, p.page.Time)...).fill(name + state)
	share := percent(child.Share)
	if child.State == "TRANSIENT_FAILURE" {
		share = "-"
	}
	l = l.add(plain, strings.Repeat(" ", max(0, shareCells-cells(share)))+share).add(plain, "  ")
	if p.columns >= wide {
		filled := min(barCells, max(0, int(child.Share*barCells+0.5)))
		l = l.add(good, strings.Repeat("█", filled)).add(faint, strings.Repeat("·", barCells-filled)).add(plain, "  ")
	}
	t = plain
	if child.Ejected != "" {
		t = bad
	}
	if room := p.columns - l.cells(); cells(about) > room && child.Calls != nil {
		about = cut(inShort(child), max(1, room))
	}
	p.lines = append(p.lines, l.add(t, about))
}

func about(child *debugpage.Child) string {
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

// inShort returns remarks about an endpoint for a narrow terminal. The result of calls comes first.
func inShort(child *debugpage.Child) string {
	var parts []string
	switch c := child.Calls; {
	case c.Failed > 0:
		parts = append(parts, fmt.Sprintf("%d/%d failed", c.Failed, c.Started))
	case child.State == "READY" && c.Started > 0:
		parts = append(parts, count(int(min(c.Started, math.MaxInt)), "call"))
	}
	if child.Ejected != "" {
		parts = append(parts, child.Ejected)
	}
	if child.State != "READY" && child.Error != "" {
		parts = append(parts, child.Error)
	}
	return strings.Join(parts, ", ")
}

func title(child *debugpage.Child) string {
	switch {
	case child.Title != "":
		return child.Title
	case child.Name == "/":
		return "no locality"
	}
	return child.Name
}

func branches(p *debugpage.Policy) bool {
	return slices.ContainsFunc(p.Children, func(c *debugpage.Child) bool { return c.Below != nil })
}
