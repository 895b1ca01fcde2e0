package join

import (
	"slices"
	"time"
)

const errPartOfPart = "it is a part and gives a list of parts: want these in the list that it is in"

// Replaced is called when a source has answered with a list of mechanisms, which has at least one
// entry and distinct names. The list replaces the source's previous answer or list. If a previous
// list had a mechanism with the name and the source of an entry, that mechanism continues. If it
// had one with the same name and another source, the entry inherits that one's last answer until
// its own source answers. If the mechanism is itself in a list, its answer counts as a failure.
func (c *Core) Replaced(now time.Time, id ID, list []Mechanism) []Action {
	m := c.at(now, id)
	switch {
	case m == nil:
		return nil
	case m.whole != nil:
		c.fail(m, errPartOfPart)
		return c.take()
	}
	c.well(m)
	c.split(m, list)
	m.from = own
	c.do(Action{Kind: Keep, ID: id, Parts: list, At: c.now})
	c.do(Action{Kind: Accept, ID: id})
	return c.take()
}

// split stores the list of mechanisms that m's source has sent, and uses it at once unless it must
// wait (see ForList).
func (c *Core) split(m *mechanism, list []Mechanism) {
	c.spoke(m)
	before := m.all()
	fresh := c.replace(m, list)
	if len(fresh) > 0 && m.waits[ForList] == over {
		m.waits[ForList] = notBegun // earlier lists used up the limit, but this one has a new source
	}
	switch {
	case slices.Equal(m.next, m.parts):
		m.next = nil
		c.end(m, ForList)
	case m.parts == nil && m.phase != Answered:
		m.parts = []*mechanism{} // m has no answer that could stay in use until the list is ready
	}
	m.phase, m.err, m.listed = Answered, "", true
	c.drop(m, before)
	c.turn()
	for _, p := range fresh {
		c.start(p.mechanism, p.heir)
	}
}

type newPart struct {
	*mechanism
	heir *mechanism
}

func (c *Core) replace(m *mechanism, list []Mechanism) (fresh []newPart) {
	before := m.all()
	m.next = nil
	for _, given := range list {
		if m.Name != "" {
			given.Name = m.Name + "/" + given.Name
		}
		p, heir := find(before, given)
		switch {
		case p == nil:
			p = c.add(given, m)
			if heir != nil {
				c.inherit(p, heir)
			}
			fresh = append(fresh, newPart{p, heir})
		case p.OutlierDetection != given.OutlierDetection:
			p.OutlierDetection = given.OutlierDetection
			c.touch(p)
		}
		m.next = append(m.next, p)
	}
	return fresh
}

// find looks in the previous lists for the mechanism that has the name and the source of m. If
// there is none, it returns in heir the mechanism with the same name that answered last, whose
// answer m inherits.
func find(before []*mechanism, m Mechanism) (same, heir *mechanism) {
	for _, p := range before {
		switch {
		case p.Name != m.Name:
		case m.Source != nil && p.Source == m.Source:
			return p, nil
		case heir == nil || heir.phase != Answered && p.phase == Answered || p.number > heir.number:
			heir = p
		}
	}
	return nil, heir
}

func (c *Core) inherit(p, from *mechanism) {
	p.phase, p.answer, p.err = from.phase, from.answer, from.err
	p.complaint, p.heard, p.number = from.complaint, from.heard, from.number
	p.until = c.confirmedUntil(from)
	if p.phase != Outstanding {
		p.from = predecessor
	}
}

// turn replaces the list in use by the next one, for each mechanism whose next list no longer has
// to wait.
func (c *Core) turn() {
	has := func(list []*mechanism, phase Phase) bool {
		return slices.ContainsFunc(list, func(p *mechanism) bool { return p.phase == phase })
	}
	waits := func(p *mechanism) bool { return p.phase == Outstanding || p.from == predecessor }
	for _, m := range c.list {
		working := m.parts == nil || has(m.parts, Answered)
		switch {
		case m.next == nil:
		case working && (!has(m.next, Answered) || m.waits[ForList] != over && slices.ContainsFunc(m.next, waits)):
			if m.waits[ForList] == notBegun {
				c.begin(ForList, m)
			}
		default:
			c.useNext(m)
		}
	}
}

func (c *Core) useNext(m *mechanism) {
	before := m.all()
	c.end(m, ForList)
	m.parts, m.next, m.answer = m.next, nil, Answer{}
	if len(m.parts) > 1 && c.waits[ForFirst] == notBegun && !c.sent {
		c.begin(ForFirst, nil)
	}
	c.changed = true
	c.drop(m, before)
}

func (c *Core) drop(m *mechanism, before []*mechanism) {
	after := m.all()
	for _, p := range before {
		if slices.Contains(after, p) {
			continue
		}
		p.gone = true
		c.end(p, ForWord, ForCalls, ForLog)
		if p.holds() && p.from == own {
			c.do(Action{Kind: Confirm, ID: p.id, Answer: p.answer, At: c.confirmedUntil(p)})
		}
		if p.begun {
			c.stop(p)
		}
	}
}

func (m *mechanism) all() []*mechanism {
	list := slices.Clone(m.parts)
	for _, p := range m.next {
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}
