package differential

import (
	"slices"
	"strings"
)

// update is "Configuration Updates".
func (m *model) update(words []string) {
	m.version++
	m.ids, m.ignored = map[string]string{}, map[string]bool{}
	var priorities []string
	for _, id := range words {
		id, ignored := strings.CutSuffix(id, "!")
		if id != "retain" {
			m.ignored[nameOf(id)] = ignored
			m.ids[nameOf(id)] = id
			priorities = append(priorities, nameOf(id))
		}
	}
	atOnce := m.rows["p-rejected-at-once"]
	if !atOnce {
		m.priorities, m.updating = priorities, true
	}
	m.updateChildren(atOnce)
	m.priorities, m.updating = priorities, true
	m.removeChildren(slices.Contains(words, "retain"))
	m.drain()
	m.updating = false
	m.choose(everything)
	returned := m.returned && !m.rows["p-update-error"]
	m.drain()
	m.returned = returned
}

func (m *model) updateChildren(atOnce bool) {
	for _, name := range m.names() {
		c := m.children[name]
		_, configured := m.ids[name]
		switch {
		case !configured:
		case c.deactivated() && m.rows["p-update-deactivated"]:
			c.forgotten = c.forgotten || c.latest().id != m.id(c)
		case m.rows["p-type"] && c.latest().id != m.id(c):
			m.destroy(c)
		default:
			m.updateConfigured(c, atOnce)
		}
	}
}

func (m *model) removeChildren(retain bool) {
	for _, name := range m.names() {
		c := m.children[name]
		_, configured := m.ids[name]
		c.forgotten = c.forgotten || c.removed && configured
		if c.removed = c.removed && !configured; configured || c.removed {
			continue
		}
		keep := retain && !m.rows["p-removed"]
		if c.deactivated() {
			keep = retain || m.rows["p-removed-deactivated"]
		}
		c.removed = true
		if keep {
			m.deactivate(c)
		} else {
			m.destroy(c)
		}
	}
}

func (m *model) updateConfigured(c *modelChild, chooseAtOnce bool) {
	if !m.updateChild(c) {
		return
	}
	if chooseAtOnce {
		m.reject(c)
		return
	}
	m.rejectLater(c)
}

// updateChild updates a child, and returns whether the child rejects that, which is
// then yet to be handled: see rejectLater.
func (m *model) updateChild(c *modelChild) (rejected bool) {
	s := c.latest()
	if s == nil || s.id != m.id(c) {
		s = m.stubs.build(m.id(c))
		c.switchTo(s)
		c.forgotten = false
	}
	s.version = m.version
	if !c.forgotten {
		c.ignored = m.ignored[c.name]
	}
	if _, ok := m.ids[c.name]; !ok { // started on the former configuration, during an update
		s.version--
	}
	if state, ok := m.onUpdate[c.name]; ok {
		m.say(c, s, state)
	}
	if m.rejects[c.name] {
		m.returned = true
		c.rejected()
	}
	return m.rejects[c.name]
}

func (m *model) rejectLater(c *modelChild) {
	rejection := func() {
		if m.children[c.name] == c {
			m.reject(c)
		}
	}
	if m.rows["p-rejected-first"] {
		m.rejections = append(m.rejections, rejection)
		return
	}
	m.later(rejection)
}

func (m *model) reject(c *modelChild) {
	if !m.rows["p-rejected"] && (c.state == ready || c.state == idle) {
		return
	}
	m.tracked(c, failed, "fail: no good")
}

func (m *model) exitIdle() {
	for _, name := range m.names() {
		c := m.children[name]
		if name == m.inUse || m.rows["p-exit-idle"] && !c.deactivated() {
			c.latest().exitIdles++
		}
	}
}

// passesOn says whether a child's request for re-resolution is passed on.
func (m *model) passesOn(c *modelChild) bool {
	_, configured := m.ids[c.name]
	switch {
	case !configured && !m.rows["p-resolve-now-removed"]:
		return false
	case c.forgotten && !m.rows["p-resolve-now-returned"]:
		return !m.ignored[c.name]
	case c.deactivated() && !m.rows["p-update-deactivated"]:
		return !m.ignored[c.name]
	}
	return !c.ignored
}

func (m *model) resolverError() {
	if len(m.children) == 0 && !m.rows["p-no-child"] {
		m.publish(failed, "fail: no such host")
	}
	for _, name := range m.names() {
		if c := m.children[name]; !c.deactivated() || !m.rows["p-resolver-error"] {
			c.latest().errors++
		}
	}
}
