package prioritymodel

import "fmt"

// SetCurrentPriority is the pseudo-code's.
func (m *Model) SetCurrentPriority(priority int, deactivateLowerPriorities bool) {
	m.currentPriority = priority
	if deactivateLowerPriorities || m.Rows["p-deactivate-lower"] {
		for p := priority + 1; p < len(m.config.Priorities); p++ {
			childName := m.config.Priorities[p]
			if child, ok := m.children[childName]; ok {
				child.Deactivate(m.config.ChildRetention)
			}
		}
	}
	child := m.children[m.config.Priorities[priority]]
	m.inUse = child.name
	m.updateState(fmt.Sprintf("%d %d", child.number, child.revision), child.picker())
}

// ChoosePriority is the pseudo-code's.
func (m *Model) ChoosePriority() {
	if len(m.config.Priorities) == 0 {
		m.inUse = ""
		m.updateState("empty", fails("priority policy has empty priority list"))
		return
	}
	before := m.currentPriority
	m.currentPriority = none
	for priority, childName := range m.config.Priorities {
		child, ok := m.children[childName]
		if !ok {
			child = m.CreateChild(childName)
			m.children[childName] = child
			child.Update()
		} else {
			child.MaybeReactivate()
		}
		if m.delayed(child, priority, before) {
			continue
		}
		if child.connectivityState() == Ready || child.connectivityState() == Idle {
			m.SetCurrentPriority(priority, true)
			return
		}
		if child.FailoverTimerPending() {
			m.SetCurrentPriority(priority, false)
			return
		}
	}
	for priority, childName := range m.config.Priorities {
		child := m.children[childName]
		if child.connectivityState() == Connecting && !m.Rows["p-connecting"] {
			m.SetCurrentPriority(priority, false)
			return
		}
	}
	m.SetCurrentPriority(len(m.config.Priorities)-1, false)
}

// choose runs the algorithm in its "two events", but not "in the middle of applying a
// config update", nor from inside itself, where child.Update() makes a child report.
func (m *Model) choose() {
	if m.updating || m.closed || m.choosing {
		return
	}
	m.choosing = true
	m.ChoosePriority()
	m.choosing = false
	for len(m.rejections) > 0 {
		next := m.rejections[0]
		m.rejections = m.rejections[1:]
		next()
	}
}

// updateState publishes a state, which `what` tells from all others. Unlike in the
// pseudo-code what is published already is not published again, but after an update.
func (m *Model) updateState(what string, r Report) {
	if what != m.published || m.force {
		m.publish(r)
	}
	m.published, m.force = what, false
}

func (m *Model) publish(r Report) {
	m.last = r
	m.Log(Event{Verb: "publish", Report: r})
}

// delayed is the failback delay, which A56 does not have: a lower priority that is
// READY stays in use until a higher one has been READY for long enough.
func (m *Model) delayed(child *child, priority, before int) bool {
	if m.config.FailbackDelay == 0 || before <= priority {
		return false
	}
	if m.children[m.config.Priorities[before]].connectivityState() != Ready {
		return false
	}
	if child.reported.State == Ready {
		return m.now < child.readyLongAt
	}
	if child.reported.State == Idle && !child.woken {
		child.woken = true
		child.exitIdle()
	}
	return true
}
