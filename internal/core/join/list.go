package join

import (
	"slices"
	"time"
)

const errNestedList = "it sends a list although it is in a list: want its entries in the list that it is in"

// Replaced is called when a source answers with a list of mechanisms, which replaces the previous
// answer or list of that source. There must be at least one entry, and names must be distinct. An
// entry with the same name and source as before is still the same mechanism. If only the name is
// the same, the new source can fall back to the last good answer under that name (see Config.Kept).
// Lists can't be nested: if the mechanism id is itself part of a list, we count this as a failure
// of its source.
func (c *Core) Replaced(now time.Time, id ID, list []Mechanism) []Action {
	m := c.beginEvent(now, id)
	switch {
	case m == nil:
		return nil
	case m.parent != nil:
		c.fail(m, errNestedList)
		return c.takeActions()
	}
	c.confirmAnswer(m)
	c.setList(m, list)
	c.useReadyLists()
	m.stored = false
	c.addAction(Action{Kind: Keep, ID: id, Kept: Kept{List: list, Confirmed: c.now}, Current: true})
	return c.takeActions()
}

func (c *Core) setList(m *mechanism, list []Mechanism) {
	m.endAnswerWaits()
	before := m.listed()
	if c.buildNextList(m, list) && c.isOver(m.waits.list) {
		m.waits.list = time.Time{}
	}
	switch {
	case slices.Equal(m.nextList, m.list):
		m.nextList, m.waits.list = nil, time.Time{}
	case m.list == nil && m.Phase != Answered:
		m.list = []*mechanism{} // m has no answer that we could use in the meantime, so use the list immediately
	}
	m.Phase = Answered
	c.removeUnlisted(m, before)
}

func (c *Core) buildNextList(m *mechanism, list []Mechanism) (hasNew bool) {
	before := m.listed()
	m.nextList = nil
	for _, given := range list {
		if m.Name != "" {
			given.Name = m.Name + "/" + given.Name
		}
		i := slices.IndexFunc(before, func(p *mechanism) bool {
			return p.Name == given.Name && p.Source == given.Source && given.Source != nil
		})
		var p *mechanism
		if i >= 0 {
			if p = before[i]; p.Prefer != given.Prefer || p.OutlierDetection != given.OutlierDetection {
				p.Mechanism = given
				c.markChanged(p)
			}
		} else {
			p, hasNew = c.addMechanism(given, m), true
			for _, predecessor := range before {
				if predecessor.Name == given.Name {
					c.keepConfirmed(predecessor, true)
					p.waits.stored, p.hush = predecessor.waits.stored, predecessor.hush
				}
			}
			c.startSource(p)
		}
		m.nextList = append(m.nextList, p)
	}
	return hasNew
}

func (c *Core) useReadyLists() {
	for _, m := range c.list {
		hasAnswered := m.list == nil || hasPhase(m.list, Answered)
		switch {
		case m.nextList == nil:
		case hasAnswered && (!hasPhase(m.nextList, Answered) || !c.isOver(m.waits.list) && hasPhase(m.nextList, Outstanding)):
			if m.waits.list.IsZero() {
				m.waits.list = c.now.Add(c.config.Patience)
			}
		default:
			c.useNextList(m)
		}
	}
}

func (c *Core) useNextList(m *mechanism) {
	before := m.listed()
	m.list, m.nextList, m.Answer, m.waits.list = m.nextList, nil, Answer{}, time.Time{}
	if len(m.list) > 1 && c.firstWait.IsZero() && !c.hasSent {
		c.firstWait = c.now.Add(c.config.Patience)
	}
	c.changed = true
	c.removeUnlisted(m, before)
}

func (c *Core) removeUnlisted(m *mechanism, before []*mechanism) {
	after := m.listed()
	for _, p := range before {
		if slices.Contains(after, p) {
			continue
		}
		c.keepConfirmed(p, false)
		c.stopSource(p)
	}
}

func hasPhase(list []*mechanism, phase Phase) bool {
	return slices.ContainsFunc(list, func(p *mechanism) bool { return p.Phase == phase })
}

func (m *mechanism) listed() []*mechanism {
	list := slices.Clone(m.list)
	for _, p := range m.nextList {
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}
