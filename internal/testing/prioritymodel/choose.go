package prioritymodel

import (
	"fmt"
	"slices"
)

// ChoosePriority follows A56's pseudo-code. With Overflow, we use the highest READY priority
// instead of A56's choice, unless calls are already waiting for the first connection of that
// choice.
func (m *Model) ChoosePriority() {
	if len(m.config.Priorities) == 0 {
		m.childInUse = ""
		m.updateState("empty", failedReport("priority policy has empty priority list"))
		return
	}
	chosen := m.choiceOfA56()
	if m.config.Overflow && !m.waitsForFirstConnection(chosen) {
		if highest := slices.IndexFunc(m.config.Priorities, m.isReady); highest >= 0 {
			chosen = highest
			for _, name := range m.config.Priorities[:chosen] {
				if c := m.children[name]; c != nil {
					c.wake()
				}
			}
			m.children[m.config.Priorities[chosen]].MaybeReactivate()
		}
	}
	state := m.children[m.config.Priorities[chosen]].connectivityState()
	m.SetCurrentPriority(chosen, state == Ready || state == Idle)
}

func (m *Model) choiceOfA56() int {
	for priority, childName := range m.config.Priorities {
		if m.children[childName] == nil {
			m.create(childName)
		}
		child := m.children[childName]
		child.MaybeReactivate()
		if child.connectivityState() == Ready || child.connectivityState() == Idle {
			return priority
		}
		if child.FailoverTimerPending() {
			return priority
		}
	}
	for priority, childName := range m.config.Priorities {
		child := m.children[childName]
		if child.connectivityState() == Connecting && !m.Rows["p-connecting"] {
			return priority
		}
	}
	return len(m.config.Priorities) - 1
}

func (m *Model) waitsForFirstConnection(priority int) bool {
	c := m.children[m.config.Priorities[priority]]
	return c.name == m.childInUse && !c.wasReady && c.FailoverTimerPending()
}

func (m *Model) isReady(name string) bool {
	c := m.children[name]
	return c != nil && c.connectivityState() == Ready
}

func (m *Model) create(name string) {
	child := m.CreateChild(name)
	m.children[name] = child
	child.Update()
}

func (m *Model) SetCurrentPriority(priority int, deactivateLowerPriorities bool) {
	m.currentPriority = priority
	if deactivateLowerPriorities || m.Rows["p-deactivate-lower"] {
		for _, childName := range m.config.Priorities[priority+1:] {
			if child, ok := m.children[childName]; ok && !slices.Contains(m.standbys(), childName) {
				child.Deactivate(m.config.ChildRetention)
			}
		}
	}
	child := m.children[m.config.Priorities[priority]]
	m.childInUse = child.name
	m.keepStandbys(child)
	m.updateState(fmt.Sprintf("%d %d", child.number, child.revision), child.picker())
}

// choose does nothing while an update is being applied, or when the report comes from a child that
// choose itself is updating.
func (m *Model) choose() {
	if m.updating || m.closed || m.choosing {
		return
	}
	m.choosing = true
	m.ChoosePriority()
	for m.startStandby() {
		m.ChoosePriority()
	}
	m.choosing = false
	for len(m.delayedErrors) > 0 {
		next := m.delayedErrors[0]
		m.delayedErrors = m.delayedErrors[1:]
		next()
	}
}

// updateState doesn't publish an unchanged state again, except after a configuration update. A56's
// pseudo-code does.
func (m *Model) updateState(id string, r Report) {
	if id != m.published || m.forcePublish {
		m.publish(r)
	}
	m.published, m.forcePublish = id, false
}

func (m *Model) publish(r Report) {
	m.lastPublished = r
	m.Log(Event{Verb: "publish", Report: r})
}
