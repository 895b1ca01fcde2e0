package prioritymodel

import (
	"slices"
	"time"
)

// This is what near groups are, from their text: "groups of one number do not wait for each
// other's timers in a row".

// of returns the source's priority that a priority belongs to.
func (m *Model) of(priority int) int {
	if m.config.Of == nil {
		return priority
	}
	return m.config.Of[priority]
}

// groups returns the names of the groups of which one is a priority, in order.
func (m *Model) groups(priority int) (names []string) {
	for p, name := range m.config.Priorities {
		if m.of(p) == m.of(priority) {
			names = append(names, name)
		}
	}
	return names
}

// hurry is for "the first group of a number is not READY after 1 s", where there are others. One
// that is IDLE waits for nothing.
func (c *child) hurry() {
	priority := slices.Index(c.m.config.Priorities, c.name)
	if priority < 0 || c.reported.State == Ready || c.reported.State == Idle {
		c.lateAt = never
		return
	}
	switch groups := c.m.groups(priority); {
	case len(groups) == 1 || groups[0] != c.name:
		c.lateAt = never
	case c.lateAt == never:
		c.lateAt = c.m.now + time.Second
	}
}

// late says that it is so of the number in use.
func (m *Model) late() bool {
	first := m.children[m.groups(m.currentPriority)[0]]
	return first != nil && first.lateAt <= m.now
}

// early says that a group is started, or kept, for the first one is late, beside one in use for
// which calls wait: "started as standbys are".
func (m *Model) early(inUse *child, name string) bool {
	return m.late() && slices.Contains(m.groups(m.currentPriority), name) && inUse.connectivityState() != Idle
}
