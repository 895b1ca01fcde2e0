package prioritymodel

import (
	"fmt"
	"slices"
)

// SetCurrentPriority implements the function of this name in the pseudo-code of gRFC A56.
func (m *Model) SetCurrentPriority(priority int, deactivateLowerPriorities bool) {
	m.noteFailure(priority)
	m.currentPriority = priority
	m.dropCandidate(m.config.Priorities[priority])
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
	report := child.picker()
	id := fmt.Sprintf("%d %d", child.number, child.revision)
	report.Trying = m.trialChildren(child, priority)
	for _, name := range m.trialChildren(child, priority) {
		id += fmt.Sprintf(" %s %d", name, m.children[name].reports)
	}
	m.updateState(id, report)
}

// trialChildren returns the children that get a few trial calls: half-open children, and children
// that would have enough READY endpoints if the unproven endpoints counted. It leaves out the child
// in use, deactivated children and, if the child in use is good, all lower priorities.
func (m *Model) trialChildren(inUse *child, priority int) []string {
	var names []string
	for p, name := range m.config.Priorities {
		c := m.children[name]
		if c != nil && c != inUse && !c.deactivated() && (c.failing() && c.reported.Condition == "half-open" || c.belowMinReady() && c.enoughIfProven()) && (p < priority || !inUse.good()) {
			names = append(names, name)
		}
	}
	return names
}

// choose chooses a priority and creates the missing standbys. It does nothing while a configuration
// update is being applied, and when a child that choose itself updates reports a state.
func (m *Model) choose() {
	if m.updating || m.closed || m.choosing {
		return
	}
	m.choosing = true
	m.ChoosePriority()
	for m.startStandby() {
		m.ChoosePriority() // the new standby's report may change the choice
	}
	m.choosing = false
	for len(m.delayedErrors) > 0 {
		next := m.delayedErrors[0]
		m.delayedErrors = m.delayedErrors[1:]
		next()
	}
}

// updateState publishes a state. id identifies the state and its child. Unlike the pseudo-code of
// gRFC A56, updateState publishes an unchanged state again only after a configuration update.
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
