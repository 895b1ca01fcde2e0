package join

import (
	"slices"
	"time"
)

const errNestedList = "it sends a list although it is in a list: want its entries in the list that it is in"

// Replaced is called when a source has answered with a list of mechanisms. The list must not be
// empty, and its names must be distinct. It replaces the source's previous answer or list. If an
// entry has the name and the source of a mechanism in the previous list, that mechanism continues.
// If only the name is the same, the last good answer of that mechanism is stored for the new source
// (see Config.Kept). If the mechanism id is itself in a list, the new list counts as a failure of
// its source.
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
	m.stored = false
	c.addAction(Action{Kind: Keep, ID: id, Kept: Kept{List: list, Confirmed: c.now}})
	return c.takeActions()
}

// We use the list at once unless it must wait (see waits.list).
func (c *Core) setList(m *mechanism, list []Mechanism) {
	m.endAnswerWaits()
	before := m.listed()
	if c.buildNextList(m, list) && c.isOver(m.waits.list) {
		m.waits.list = time.Time{} // the list may wait again, because it has a new source
	}
	switch {
	case slices.Equal(m.nextList, m.list):
		m.nextList, m.waits.list = nil, time.Time{}
	case m.list == nil && m.Phase != Answered:
		m.list = []*mechanism{} // use the list immediately, because m has no answer to use in the meantime
	}
	m.Phase = Answered
	c.removeUnlisted(m, before)
	c.useReadyLists()
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
			if p = before[i]; p.OutlierDetection != given.OutlierDetection {
				p.Mechanism = given
				c.markChanged(p)
			}
		} else {
			p, hasNew = c.addMechanism(given, m), true
			for _, predecessor := range before {
				if predecessor.Name == given.Name {
					c.keepConfirmed(predecessor)
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
		c.keepConfirmed(p)
		p.waits = waits{}
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
