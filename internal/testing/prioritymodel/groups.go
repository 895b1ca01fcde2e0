package prioritymodel

import (
	"slices"
	"time"
)

// A priority of the source may be split into near groups. A group does not wait for the failover
// timer of the group before it.

func (m *Model) of(priority int) int {
	if m.config.Of == nil {
		return priority
	}
	return m.config.Of[priority]
}

func (m *Model) groups(priority int) (names []string) {
	for p, name := range m.config.Priorities {
		if m.of(p) == m.of(priority) {
			names = append(names, name)
		}
	}
	return names
}

// hurry starts a timer of one second for the first of several near groups. If the group is not
// READY when the timer fires, the other groups start. The timer does not run while the group is
// IDLE.
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

// late reports whether the first near group of the priority in use was not READY within a second.
func (m *Model) late() bool {
	first := m.children[m.groups(m.currentPriority)[0]]
	return first != nil && first.lateAt <= m.now
}

// early reports whether a near group must run because the first group is late.
func (m *Model) early(inUse *child, name string) bool {
	return m.late() && slices.Contains(m.groups(m.currentPriority), name) && inUse.connectivityState() != Idle
}
