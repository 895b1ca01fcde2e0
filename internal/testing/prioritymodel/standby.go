package prioritymodel

import (
	"slices"
	"time"
)

// standbys returns the names of the standbys, which gRFC A56 does not have: the lower near groups
// of the source's priority in use, and as many of the source's next priorities as WarmStandby says.
// If WarmStandby is 0, the lower near groups are standbys only when the first group is late.
func (m *Model) standbys() []string {
	sources := map[int]bool{}
	last := m.currentPriority
	for p := last + 1; p < len(m.config.Priorities); p++ {
		if m.sourcePriority(p) != m.sourcePriority(m.currentPriority) {
			sources[m.sourcePriority(p)] = true
		}
		if m.config.WarmStandby > 0 && len(sources) <= m.config.WarmStandby || len(sources) == 0 && m.firstGroupIsLate() {
			last = p
		}
	}
	return m.config.Priorities[m.currentPriority+1 : last+1]
}

// keepStandbys reactivates deactivated standbys, and makes IDLE standbys connect.
func (m *Model) keepStandbys(inUse *child) {
	for _, name := range m.standbys() {
		standby := m.children[name]
		if standby == nil {
			continue
		}
		if inUse.connectivityState() == Ready || m.groupMustStart(inUse, name) {
			standby.MaybeReactivate()
		}
		if inUse.connectivityState() != Idle && !standby.deactivated() {
			standby.wake()
		}
	}
}

// startStandby creates the highest standby without a child if the priority in use is READY, or if
// the standby is a near group that must start. It reports whether it created a child.
func (m *Model) startStandby() bool {
	inUse := m.children[m.childInUse]
	if inUse == nil {
		return false
	}
	for _, name := range m.standbys() {
		if m.children[name] == nil && (inUse.connectivityState() == Ready || m.groupMustStart(inUse, name)) {
			m.create(name, true)
			return true
		}
	}
	return false
}

// skippedByFastFailover reports whether fastFailover skips a priority, which it does only while a
// lower priority can take the calls. It skips a priority that has lost its connections if that
// priority can have more than one, a standby that has never connected, and an IDLE priority below a
// skipped priority.
func (m *Model) skippedByFastFailover(child *child, priority int, skippedAbove bool) bool {
	if !m.config.FastFailover || !slices.ContainsFunc(m.config.Priorities[priority+1:], m.isReadyStandby) {
		return false
	}
	if child.connectivityState() == Idle && skippedAbove {
		return true
	}
	if child.upSinceFailure { // the child has lost its connections
		return child.FailoverTimerPending() && !slices.Contains(m.config.Single, child.name)
	}
	return child.FailoverTimerPending() && child.createdEarly
}

// isReadyStandby reports whether a child is READY and calls to it do not fail.
func (m *Model) isReadyStandby(name string) bool {
	c := m.children[name]
	return c != nil && (c.good() || c.belowMinReady())
}

// updateFailback updates the time when a child may take over from a lower priority. When the child
// becomes good, the failback delay and the jitter begin. If the child stops being good while it
// waits for their end, this counts as a failure. wasGood is whether the child was good before.
func (c *child) updateFailback(wasGood bool) {
	switch {
	case !wasGood && c.good():
		c.failbackAt = c.model.now + c.failbackDelay() + c.model.config.FailbackJitter
	case wasGood && !c.good() && c.waitsForFailback:
		c.waitsForFailback = false
		c.countFailure()
	}
}

// failbackDelay returns the failback delay of the child. Each failure after the first doubles the
// delay, up to MaxFailbackDelay.
func (c *child) failbackDelay() time.Duration {
	delay, bound := c.model.config.FailbackDelay, c.model.config.MaxFailbackDelay
	if delay >= bound {
		return delay
	}
	for n := c.failures; n > 1 && delay < bound; n-- {
		delay *= 2
		if delay == 0 {
			return 0
		}
	}
	return min(delay, bound)
}

func (c *child) countFailure() {
	if c.model.config.MaxFailbackDelay != 0 {
		c.failures++
	}
	c.forgetFailuresAt = never
}

// noteFailure is called when a priority is chosen. If calls leave a good priority for a lower
// priority, this counts as a failure of the higher one. It resets the failures and the failback
// delays of all priorities below the chosen one.
func (m *Model) noteFailure(priority int) {
	chosen := m.children[m.config.Priorities[priority]]
	if previous := m.serving; previous != nil && previous != chosen {
		if p := slices.Index(m.config.Priorities, previous.name); p < priority {
			previous.countFailure()
		}
		m.serving = nil
	}
	for _, name := range m.config.Priorities[priority:] {
		c := m.children[name]
		if c == nil {
			continue
		}
		if c.waitsForFailback = false; c != chosen {
			c.failures, c.forgetFailuresAt = 0, never
		}
	}
	if chosen.good() {
		m.serving = chosen
	}
	if bound := m.config.MaxFailbackDelay; m.serving != nil && chosen.failures > 0 && bound > 0 && chosen.forgetFailuresAt == never {
		chosen.forgetFailuresAt = m.now + bound
	}
}

// reorder handles a new list of priorities; before is the old list. If the priority in use still
// exists and the priorities above it are the same, all delays continue. Otherwise, the priorities
// that were added above it become candidates.
func (m *Model) reorder(before []string) {
	index, indexBefore := slices.Index(m.config.Priorities, m.childInUse), slices.Index(before, m.childInUse)
	if m.children[m.childInUse] == nil {
		index = none
	}
	m.currentPriority = index
	if index >= 0 && indexBefore >= 0 && slices.Equal(m.config.Priorities[:index], before[:indexBefore]) {
		return
	}
	m.serving = nil
	for name, c := range m.children {
		c.waitsForFailback = c.waitsForFailback && slices.Index(m.config.Priorities, name) >= 0 && slices.Index(m.config.Priorities, name) < index
		c.failures, c.forgetFailuresAt = 0, never
	}
	candidates := m.candidates
	m.candidates = nil
	for p, name := range m.config.Priorities {
		switch {
		case p >= index:
		case indexBefore >= 0 && slices.Contains(before[:indexBefore], name):
			if slices.Contains(candidates, name) {
				m.candidates = append(m.candidates, name)
			}
		default:
			m.candidates = append(m.candidates, name)
			if c := m.children[name]; c != nil {
				c.mustConnectFirst = false
				if c.good() {
					c.failbackAt = m.now
				}
			}
		}
	}
}

// candidate reports whether calls do not wait for a priority because it was added above a priority
// in use that is READY or reconnecting. Without fastFailover and a failback delay, only a child
// that must connect first is a candidate. A priority stops being a candidate when it is READY or in
// use.
func (t *choice) candidate(priority int) bool {
	name := t.config.Priorities[priority]
	isCandidate := t.everyAddedIsCandidate() && slices.Contains(t.candidates, name) || t.children[name].mustConnectFirst
	if !isCandidate || t.previous <= priority {
		return false
	}
	inUse := t.children[t.config.Priorities[t.previous]]
	return inUse.ready() || inUse.reconnecting()
}

// everyAddedIsCandidate reports whether every added priority is a candidate, which is so with
// fastFailover or a failback delay.
func (t *choice) everyAddedIsCandidate() bool {
	return t.config.FastFailover || t.config.FailbackDelay > 0 || t.config.FailbackJitter > 0
}

// leavesWorkingPriority reports whether the choice would move calls from a working priority to a
// higher priority that is still connecting. Only the choice after an update may do that.
func (t *choice) leavesWorkingPriority(chosen int) bool {
	if t.forcePublish || t.previous <= chosen || len(t.Rows) > 0 { // rows change this behaviour
		return false
	}
	child, inUse := t.children[t.config.Priorities[chosen]], t.children[t.config.Priorities[t.previous]]
	return child.connectivityState() == Connecting && !child.mustConnectFirst && !child.degraded() && (inUse.good() || inUse.belowMinReady())
}

// waitTarget returns the priority that calls go to or wait for. This is the candidate if there is
// one, and the chosen priority is not the previous one and cannot take calls. Otherwise it is the
// chosen priority.
func (t *choice) waitTarget(candidate, chosen int) int {
	c := t.children[t.config.Priorities[chosen]]
	if candidate != none && chosen != t.previous && !c.ready() && !c.degraded() {
		for p, name := range t.config.Priorities {
			t.eligible[p] = t.children[name]
		}
		return candidate
	}
	return chosen
}

func (m *Model) dropCandidate(name string) {
	m.candidates = slices.DeleteFunc(m.candidates, func(other string) bool { return other == name })
	m.children[name].mustConnectFirst = false
}
