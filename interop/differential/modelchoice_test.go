package differential

// everything is the cause of a choice after an update: what is in use is published,
// whatever it is.
const everything = "*"

// choose chooses, unless an update is being applied. cause is the child because of
// which it does, "" where nothing that may be published is new.
func (m *model) choose(cause string) {
	if m.updating {
		return
	}
	m.choosePriority(cause)
	for len(m.rejections) > 0 {
		rejection := m.rejections[0]
		m.rejections = m.rejections[1:]
		rejection()
	}
}

// choosePriority is ChoosePriority.
func (m *model) choosePriority(cause string) {
	if len(m.priorities) == 0 {
		if cause == everything {
			m.inUse = ""
			m.publish(failed, "fail: no priorities")
		}
		return
	}
	for i, name := range m.priorities {
		c, ok := m.children[name]
		if ok {
			m.reactivate(c)
		} else {
			c = m.create(name)
		}
		if state := c.effective(); state == ready || state == idle {
			m.use(i, cause, true)
			return
		}
		if c.failover != 0 {
			m.use(i, cause, false)
			return
		}
	}
	if !m.rows["p-connecting"] {
		for i, name := range m.priorities {
			if m.children[name].effective() == connecting {
				m.use(i, cause, false)
				return
			}
		}
	}
	m.use(len(m.priorities)-1, cause, false)
}

// use is SetCurrentPriority.
func (m *model) use(priority int, cause string, deactivateLower bool) {
	if deactivateLower || m.rows["p-deactivate-lower"] {
		for _, name := range m.priorities[priority+1:] {
			if c, ok := m.children[name]; ok {
				m.deactivate(c)
			}
		}
	}
	c := m.children[m.priorities[priority]]
	if m.inUse != c.name || cause == c.name || cause == everything {
		m.inUse = c.name
		if c.expired {
			m.publish(failed, "fail: did not connect")
		} else {
			m.publish(c.state, c.pick)
		}
	}
}

func (m *model) create(name string) *modelChild {
	c := &modelChild{name: name, state: connecting, pick: "queue", failover: m.now + failover}
	m.children[name] = c
	m.updateConfigured(c, false)
	return c
}

func (m *model) destroy(c *modelChild) {
	c.close()
	delete(m.children, c.name)
}

func (m *model) deactivate(c *modelChild) {
	if c.deactivated() {
		return
	}
	c.deactivation = m.now + retention
	if m.rows["p-reactivated"] {
		c.failoverBefore = c.failover
		c.state, c.pick, c.failover, c.expired = connecting, "queue", 0, false
	}
}

func (m *model) reactivate(c *modelChild) {
	if !c.deactivated() {
		return
	}
	c.deactivation = 0
	if m.rows["p-type"] && c.current.id != m.id(c) {
		c.close()
	}
	if m.rows["p-reactivated"] {
		m.startAnew(c)
	}
	if m.rows["p-update-deactivated"] {
		m.updateConfigured(c, false)
	}
}

// startAnew makes a child that is reactivated one that connects, as a new one does,
// until what it has reported is handled once more.
func (m *model) startAnew(c *modelChild) {
	c.failover = m.now + failover
	s := c.current
	if s == nil {
		return
	}
	if s.said == connecting || s.said == "" {
		switch pending := c.failoverBefore > m.now; {
		case pending && !m.rows["p-timer-runs-on"]:
			c.failover = c.failoverBefore
		case !pending && !m.rows["p-sticky-failure"]:
			c.failover = 0
		}
	}
	if state, pick := s.said, s.saidPick; state != "" {
		m.later(func() { m.reported(c, s, state, pick) })
	}
}

func (m *model) reported(c *modelChild, s *modelStub, state, pick string) {
	if !s.closed && c.reported(s, state, pick) {
		m.tracked(c, c.current.state, c.current.pick)
	}
}

// tracked keeps a child's state, and chooses.
func (m *model) tracked(c *modelChild, state, pick string) {
	if c.deactivated() && m.rows["p-reactivated"] {
		return
	}
	m.track(c, state, pick)
	if c.expired {
		m.choose("")
		return
	}
	m.choose(c.name)
}

func (m *model) track(c *modelChild, state, pick string) {
	before := c.state
	c.state, c.pick = state, pick
	if state == connecting {
		if before != connecting && c.seenReadyOrIdle {
			c.failover = m.now + failover
		}
		return
	}
	c.failover, c.expired, c.seenReadyOrIdle = 0, false, state != failed
}

// id returns what the configuration has for a child.
func (m *model) id(c *modelChild) string {
	if id, ok := m.ids[c.name]; ok {
		return id
	}
	return c.name // see updateChild
}
