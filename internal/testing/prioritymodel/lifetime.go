package prioritymodel

import "time"

func (c *child) deactivated() bool { return c.destroyAt != never }

// Deactivate implements the function of this name in the pseudo-code of gRFC A56 ("Child Lifetime
// Management").
func (c *child) Deactivate(retention time.Duration) {
	if c.deactivated() {
		return
	}
	if retention == 0 {
		c.destroy()
		return
	}
	c.destroyAt = c.m.now + retention
	if c.m.Rows["p-reactivated"] {
		c.failoverBefore = c.failoverAt
		c.reported, c.failoverAt, c.expired = unreported, never, false
		c.revision++
	}
}

// remove deactivates a child that is no longer configured. If the child is already deactivated and
// RemovedChildRetention is shorter than ChildRetention, its timer starts again.
func (c *child) remove() {
	retention := c.m.config.RemovedChildRetention
	switch {
	case c.deactivated() && c.m.Rows["p-removed-deactivated"]:
	case !c.deactivated() && c.m.Rows["p-removed"]:
		c.destroy()
	case !c.removed:
		if retention < c.m.config.ChildRetention || retention == 0 {
			c.destroyAt = never
		}
		c.Deactivate(retention)
	}
	c.removed = true
}

// MaybeReactivate implements the function of this name in the pseudo-code of gRFC A56.
func (c *child) MaybeReactivate() {
	if !c.deactivated() {
		return
	}
	c.destroyAt = never
	if c.m.Rows["p-type"] && c.policies.Current.ID != c.id() {
		c.policies.Close()
	}
	if c.m.Rows["p-reactivated"] {
		c.startAnew()
	}
	if c.m.Rows["p-update-deactivated"] {
		c.Update()
	}
}

// startAnew is for row p-reactivated of docs/differences.md. A reactivated child counts as
// CONNECTING until its last report is handled again.
func (c *child) startAnew() {
	c.failoverAt = c.m.now + c.m.config.FailoverTimeout
	s := c.policies.Current
	if s == nil {
		return
	}
	if s.Said.State == Connecting || s.Said.State == "" {
		switch pending := c.failoverBefore != never && c.failoverBefore > c.m.now; {
		case pending && !c.m.Rows["p-timer-runs-on"]:
			c.failoverAt = c.failoverBefore
		case !pending && !c.m.Rows["p-sticky-failure"]:
			c.failoverAt = never
		}
	}
	if said := s.Said; said.State != "" {
		c.m.queue = append(c.m.queue, func() { c.m.reported(c, s, said) })
	}
}

func (m *Model) Advance(d time.Duration) {
	for end := m.now + d; ; {
		var first *child
		for _, name := range m.names() {
			c := m.children[name]
			if first != nil && c.due() == first.due() && c.due() <= end {
				m.Tie = m.Tie || c.due() != c.destroyAt || first.due() != first.destroyAt
			}
			if c.due() <= end && (first == nil || c.due() < first.due()) {
				first = c
			}
		}
		if first == nil {
			m.now = end
			return
		}
		m.now = first.due()
		switch m.now {
		case first.destroyAt:
			first.destroy()
		case first.failoverAt:
			first.expire()
			m.choose()
		case first.steadyAt:
			first.failures, first.steadyAt = 0, never
		default:
			m.choose()
		}
		m.drain()
	}
}

func (c *child) due() time.Duration {
	due := min(c.failoverAt, c.destroyAt, c.steadyAt)
	if c.reported.State == Ready && c.readyLongAt > c.m.now {
		due = min(due, c.readyLongAt)
	}
	if c.lateAt > c.m.now {
		due = min(due, c.lateAt)
	}
	return due
}
