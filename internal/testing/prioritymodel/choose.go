package prioritymodel

import (
	"fmt"
	"slices"
	"strings"
)

// SetCurrentPriority is the pseudo-code's.
func (m *Model) SetCurrentPriority(priority int, deactivateLowerPriorities bool) {
	m.noteFailure(priority)
	m.currentPriority = priority
	if deactivateLowerPriorities || m.Rows["p-deactivate-lower"] {
		for p := priority + 1 + m.config.WarmStandby; p < len(m.config.Priorities); p++ {
			childName := m.config.Priorities[p]
			if child, ok := m.children[childName]; ok {
				child.Deactivate(m.config.ChildRetention)
			}
		}
	}
	child := m.children[m.config.Priorities[priority]]
	m.inUse = child.name
	m.keepStandbys(child)
	report := child.picker()
	what := fmt.Sprintf("%d %d", child.number, child.revision)
	if report.Text != "queue" && !strings.HasPrefix(report.Text, "fail: ") {
		report.Probing = m.probing(child, priority)
	}
	for _, name := range m.probing(child, priority) {
		what += fmt.Sprintf(" %s %d", name, m.children[name].reports)
	}
	m.updateState(what, report)
}

// probing are the children that get a few of the calls beside the one in use: those that
// are half-open above it, and all if it is poor itself.
func (m *Model) probing(inUse *child, priority int) []string {
	var names []string
	for p, name := range m.config.Priorities {
		c := m.children[name]
		if c != nil && c != inUse && !c.deactivated() && c.poor() && c.reported.Condition == "half-open" && (p < priority || inUse.poor()) {
			names = append(names, name)
		}
	}
	return names
}

// poor is a child that is READY and should not have the calls, which A56 does not have.
func (c *child) poor() bool {
	return c.connectivityState() == Ready && (c.reported.Condition != "" || c.lacking)
}

// good is a child that last reported READY, and nothing that makes it poor.
func (c *child) good() bool {
	return c.reported.State == Ready && c.reported.Condition == "" && !c.lacking
}

// mark notes whether too little of the child is READY. What has been below the mark is
// so until it reaches the recovery mark, if that is higher.
func (c *child) mark() {
	const rounding = 1e-12 // what is missing is not exact
	there, least, recovered := 1-c.reported.Missing+rounding, c.m.config.MinReady, c.m.config.MinReadyRecovery
	switch {
	case least == 0 || c.reported.State != Ready:
		c.lacking = false
	case there < least:
		c.lacking = true
	case there >= recovered:
		c.lacking = false
	}
}

// firstPoor returns the highest priority that is poor, which is used where no priority is
// that A56 would use were the poor ones not there; none for none.
func (m *Model) firstPoor() int {
	for p, name := range m.config.Priorities {
		if c := m.children[name]; c != nil && c.poor() {
			return p
		}
	}
	return none
}

// lost is a child that lost its last connection while it was poor, and has time to connect.
func (c *child) lost() bool {
	return c.wasPoor && (c.connectivityState() == Idle || c.connectivityState() == Connecting && c.FailoverTimerPending())
}

// hasToConnect says whether a child may yet become READY, in which case what is poor above
// it stays in use. One that is IDLE is asked to connect, once.
func (m *Model) hasToConnect(child *child) bool {
	if child.connectivityState() != Idle {
		return child.FailoverTimerPending()
	}
	if !child.woken {
		child.woken = true
		child.exitIdle()
	}
	return true
}

// readyBelow says whether of the lower priorities the first that has neither failed nor been
// lost is READY.
func (m *Model) readyBelow(priority int) bool {
	below := slices.DeleteFunc(slices.Clone(m.config.Priorities[priority+1:]), func(name string) bool {
		child := m.children[name]
		return child != nil && (child.connectivityState() == TransientFailure || child.lost())
	})
	return len(below) > 0 && m.children[below[0]] != nil && m.children[below[0]].connectivityState() == Ready
}

// outdone is a child that was lost while it was poor, beside a lower one that is READY.
func (m *Model) outdone(child *child, priority int) bool {
	if !child.lost() || !m.readyBelow(priority) {
		return false
	}
	m.hasToConnect(child)
	return true
}

// create is what the pseudo-code does where a child does not exist.
func (m *Model) create(name string, early bool) *child {
	child := m.CreateChild(name)
	child.early = early
	m.children[name] = child
	child.Update()
	return child
}

// ChoosePriority is the pseudo-code's.
func (m *Model) ChoosePriority() {
	if len(m.config.Priorities) == 0 {
		m.inUse = ""
		m.updateState("empty", fails("priority policy has empty priority list"))
		return
	}
	before, passed := m.currentPriority, false
	m.currentPriority = none
	for priority, childName := range m.config.Priorities {
		child, ok := m.children[childName]
		if !ok {
			child = m.create(childName, passed)
		} else {
			child.MaybeReactivate()
		}
		if child.poor() {
			continue
		}
		if m.outdone(child, priority) || m.delayed(child, priority, before) {
			continue
		}
		if m.notWaitedFor(child, priority, passed) {
			passed = true
			continue
		}
		if best := m.firstPoor(); best != none && best < priority && m.hasToConnect(child) {
			m.SetCurrentPriority(best, false)
			return
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
	if best := m.firstPoor(); best != none {
		m.SetCurrentPriority(best, false)
		return
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
	for m.startStandby() {
		m.ChoosePriority() // what it reported may change the choice
	}
	m.choosing = false
	for len(m.refusals) > 0 {
		next := m.refusals[0]
		m.refusals = m.refusals[1:]
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
	if m.config.FailbackDelay == 0 && m.config.FailbackJitter == 0 || before <= priority {
		return false
	}
	if below := m.children[m.config.Priorities[before]]; below.connectivityState() != Ready || below.poor() {
		return false
	}
	if child.reported.State == Ready {
		child.waits = m.now < child.readyLongAt
		return child.waits
	}
	if child.reported.State == Idle && !child.woken {
		child.woken = true
		child.exitIdle()
	}
	return true
}
