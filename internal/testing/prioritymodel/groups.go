package prioritymodel

import (
	"slices"
	"time"
)

// The near groups of one priority of the source do not wait for each other's timers in sequence.

// of returns the source's priority to which a priority belongs.
func (m *Model) of(priority int) int {
	if m.config.Of == nil {
		return priority
	}
	return m.config.Of[priority]
}

// groups returns the names of a priority's near groups in order.
func (m *Model) groups(priority int) (names []string) {
	for p, name := range m.config.Priorities {
		if m.of(p) == m.of(priority) {
			names = append(names, name)
		}
	}
	return names
}

// hurry applies to the first of several groups. It starts a timer of one second. If the first group
// is not READY when the timer ends, the other groups are started. An IDLE group waits for nothing.
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

// late reports whether that second has passed for the group in use.
func (m *Model) late() bool {
	first := m.children[m.groups(m.currentPriority)[0]]
	return first != nil && first.lateAt <= m.now
}

// early reports whether a group is started or kept, like a standby, because the first group is
// late.
func (m *Model) early(inUse *child, name string) bool {
	return m.late() && slices.Contains(m.groups(m.currentPriority), name) && inUse.connectivityState() != Idle
}
