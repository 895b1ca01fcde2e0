package prioritymodel

import (
	"slices"
	"time"
)

// A priority of the source may be split into near groups, each of which is a priority of the
// policy. A group may start before the failover timer of the previous group has fired.

func (m *Model) sourcePriority(priority int) int {
	if m.config.SourcePriorities == nil {
		return priority
	}
	return m.config.SourcePriorities[priority]
}

func (m *Model) groups(priority int) (names []string) {
	for p, name := range m.config.Priorities {
		if m.sourcePriority(p) == m.sourcePriority(priority) {
			names = append(names, name)
		}
	}
	return names
}

// updateGroupTimer starts or stops the timer of the first of several near groups. If this group is
// not READY when the timer fires after a second, the other groups start. The timer does not run
// while the group is IDLE.
func (c *child) updateGroupTimer() {
	priority := slices.Index(c.model.config.Priorities, c.name)
	if priority < 0 || c.reported.State == Ready || c.reported.State == Idle {
		c.startGroupsAt = never
		return
	}
	switch groups := c.model.groups(priority); {
	case len(groups) == 1 || groups[0] != c.name:
		c.startGroupsAt = never
	case c.startGroupsAt == never:
		c.startGroupsAt = c.model.now + time.Second
	}
}

// firstGroupIsLate reports whether the first near group of the source's priority in use was not
// READY within a second.
func (m *Model) firstGroupIsLate() bool {
	first := m.children[m.groups(m.currentPriority)[0]]
	return first != nil && first.startGroupsAt <= m.now
}

// groupMustStart reports whether a near group must start because the first group is late.
func (m *Model) groupMustStart(inUse *child, name string) bool {
	return m.firstGroupIsLate() && slices.Contains(m.groups(m.currentPriority), name) && inUse.connectivityState() != Idle
}
