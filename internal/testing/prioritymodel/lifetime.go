package prioritymodel

import "time"

func (c *child) deactivated() bool { return c.destroyAt != never }

// Deactivate follows A56's pseudo-code ("Child Lifetime Management").
func (c *child) Deactivate(retention time.Duration) {
	if c.deactivated() {
		return
	}
	if retention == 0 {
		c.destroy()
		return
	}
	c.destroyAt = c.model.now + retention
	if c.model.Rows["p-reactivated"] {
		c.failoverAtBefore = c.failoverAt
		c.reported, c.failoverAt, c.timedOut = initialReport, never, false
		c.revision++
	}
}

func (c *child) remove() {
	// If the child is already deactivated and RemovedChildRetention is shorter than ChildRetention,
	// the retention timer starts over.
	retention := c.model.config.RemovedChildRetention
	switch {
	case c.deactivated() && c.model.Rows["p-removed-deactivated"]:
	case !c.deactivated() && c.model.Rows["p-removed"]:
		c.destroy()
	case !c.removed:
		if retention < c.model.config.ChildRetention || retention == 0 {
			c.destroyAt = never
		}
		c.Deactivate(retention)
	}
	c.removed = true
}

// MaybeReactivate follows A56's pseudo-code.
func (c *child) MaybeReactivate() {
	if !c.deactivated() {
		return
	}
	c.destroyAt = never
	if c.model.Rows["p-type"] && c.policies.Current.ID != c.id() {
		c.policies.Close()
	}
	if c.model.Rows["p-reactivated"] {
		c.restart()
	}
	if c.model.Rows["p-update-deactivated"] {
		c.Update()
	}
}

// restart reactivates a child like gRPC-Go does (row p-reactivated of docs/differences.md). It
// counts as CONNECTING until its last report has been handled again.
func (c *child) restart() {
	c.failoverAt = c.model.now + c.model.config.FailoverTimeout
	s := c.policies.Current
	if s == nil {
		return
	}
	if s.LastReport.State == Connecting || s.LastReport.State == "" {
		switch pending := c.failoverAtBefore != never && c.failoverAtBefore > c.model.now; {
		case pending && !c.model.Rows["p-timer-runs-on"]:
			c.failoverAt = c.failoverAtBefore
		case !pending && !c.model.Rows["p-sticky-failure"]:
			c.failoverAt = never
		}
	}
	if last := s.LastReport; last.State != "" {
		c.model.delayed = append(c.model.delayed, func() { c.model.reported(c, s, last) })
	}
}

func (m *Model) Advance(d time.Duration) {
	for end := m.now + d; ; {
		var next *child
		for _, name := range m.names() {
			c := m.children[name]
			if next != nil && c.nextTimer() == next.nextTimer() && c.nextTimer() <= end {
				m.Tie = m.Tie || c.nextTimer() != c.destroyAt || next.nextTimer() != next.destroyAt
			}
			if c.nextTimer() <= end && (next == nil || c.nextTimer() < next.nextTimer()) {
				next = c
			}
		}
		if next == nil {
			m.now = end
			return
		}
		m.now = next.nextTimer()
		switch m.now {
		case next.destroyAt:
			next.destroy()
		case next.failoverAt:
			next.expire()
			m.choose()
		}
		m.drain()
	}
}

func (c *child) nextTimer() time.Duration { return min(c.failoverAt, c.destroyAt) }
