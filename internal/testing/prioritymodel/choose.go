package prioritymodel

import (
	"fmt"
	"slices"
)

// SetCurrentPriority implements the function of this name in the pseudo-code of gRFC A56.
func (m *Model) SetCurrentPriority(priority int, deactivateLowerPriorities bool) {
	m.noteFailure(priority)
	m.currentPriority = priority
	m.noCandidate(m.config.Priorities[priority])
	if deactivateLowerPriorities || m.Rows["p-deactivate-lower"] {
		for _, childName := range m.config.Priorities[priority+1:] {
			if child, ok := m.children[childName]; ok && !slices.Contains(m.standbys(), childName) {
				child.Deactivate(m.config.ChildRetention)
			}
		}
	}
	child := m.children[m.config.Priorities[priority]]
	m.inUse = child.name
	m.keepStandbys(child)
	report := child.picker()
	what := fmt.Sprintf("%d %d", child.number, child.revision)
	report.Trying = m.onTrial(child, priority)
	for _, name := range m.onTrial(child, priority) {
		what += fmt.Sprintf(" %s %d", name, m.children[name].reports)
	}
	m.updateState(what, report)
}

// onTrial returns the children that get a few trial calls: half-open children, and children that
// would have enough READY endpoints if the unproven ones counted. The child in use, deactivated
// children, and children below a good child in use get none.
func (m *Model) onTrial(inUse *child, priority int) []string {
	var names []string
	for p, name := range m.config.Priorities {
		c := m.children[name]
		if c != nil && c != inUse && !c.deactivated() && (c.failing() && c.reported.Condition == "half-open" || c.small() && c.wouldDo()) && (p < priority || !inUse.good()) {
			names = append(names, name)
		}
	}
	return names
}

// choose chooses a priority. It does nothing while a configuration update is being applied, or
// while it is already running and a child that it updates reports a state.
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
	for len(m.refusals) > 0 {
		next := m.refusals[0]
		m.refusals = m.refusals[1:]
		next()
	}
}

// updateState publishes a state. what identifies the state and its child. Unlike the pseudo-code,
// it publishes the same state again only after an update.
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
