package prioritymodel

import (
	"slices"
	"time"
)

// standbys returns the names of the standbys: the other near groups of the priority in use, and the
// source's next priorities. If the first group is late, the other groups are standbys even if
// WarmStandby is 0. A56 has no standbys.
func (m *Model) standbys() []string {
	next := map[int]bool{}
	last := m.currentPriority
	for p := last + 1; p < len(m.config.Priorities); p++ {
		if m.of(p) != m.of(m.currentPriority) {
			next[m.of(p)] = true
		}
		if m.config.WarmStandby > 0 && len(next) <= m.config.WarmStandby || len(next) == 0 && m.late() {
			last = p
		}
	}
	return m.config.Priorities[m.currentPriority+1 : last+1]
}

// keepStandbys keeps standbys active, and makes IDLE ones connect.
func (m *Model) keepStandbys(inUse *child) {
	for _, name := range m.standbys() {
		standby := m.children[name]
		if standby == nil {
			continue
		}
		if inUse.connectivityState() == Ready || m.early(inUse, name) {
			standby.MaybeReactivate()
		}
		if inUse.connectivityState() != Idle && !standby.deactivated() {
			standby.wake()
		}
	}
}

// startStandby creates the first missing standby, if the priority in use is READY. It reports
// whether it created one.
func (m *Model) startStandby() bool {
	inUse := m.children[m.inUse]
	if inUse == nil {
		return false
	}
	for _, name := range m.standbys() {
		if m.children[name] == nil && (inUse.connectivityState() == Ready || m.early(inUse, name)) {
			m.create(name, true)
			return true
		}
	}
	return false
}

// notWaitedFor reports whether fastFailover skips a priority. It does so only while a lower one is
// READY as a standby. It skips a priority that has lost its connections and can have at least two,
// a standby that has not connected yet, and an IDLE priority below a skipped one.
func (m *Model) notWaitedFor(child *child, priority int, passed bool) bool {
	if !m.config.FastFailover || !slices.ContainsFunc(m.config.Priorities[priority+1:], m.standsBy) {
		return false
	}
	if child.connectivityState() == Idle && passed {
		return true
	}
	if child.mayStart { // it has lost its connections
		return child.FailoverTimerPending() && !slices.Contains(m.config.Single, child.name)
	}
	return child.FailoverTimerPending() && child.early
}

// standsBy reports whether a child is READY and its calls do not fail.
func (m *Model) standsBy(name string) bool {
	c := m.children[name]
	return c != nil && (c.good() || c.small())
}

// rate updates the time when a child may take over. good reports whether the child was good before.
// When the child becomes good, the failback delay and the jitter begin. If it stops being good
// before they end, this counts as a failure.
func (c *child) rate(good bool) {
	switch {
	case !good && c.good():
		c.readyLongAt = c.m.now + c.delay() + c.m.config.FailbackJitter
	case good && !c.good() && c.waits:
		c.waits = false
		c.fail()
	}
}

// delay returns the failback delay. Each failure after the first one doubles it, up to
// MaxFailbackDelay.
func (c *child) delay() time.Duration {
	delay, bound := c.m.config.FailbackDelay, c.m.config.MaxFailbackDelay
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

func (c *child) fail() {
	if c.m.config.MaxFailbackDelay != 0 {
		c.failures++
	}
	c.steadyAt = never
}

// noteFailure is called when a priority is chosen. If calls leave a good priority for a lower one,
// this counts as a failure of the good one. Priorities below the chosen one have no delay, and
// their failures no longer count.
func (m *Model) noteFailure(priority int) {
	chosen := m.children[m.config.Priorities[priority]]
	if was := m.serving; was != nil && was != chosen {
		if p := slices.Index(m.config.Priorities, was.name); p < priority {
			was.fail()
		}
		m.serving = nil
	}
	for _, name := range m.config.Priorities[priority:] {
		c := m.children[name]
		if c == nil {
			continue
		}
		if c.waits = false; c != chosen {
			c.failures, c.steadyAt = 0, never
		}
	}
	if chosen.good() {
		m.serving = chosen
	}
	if bound := m.config.MaxFailbackDelay; m.serving != nil && chosen.failures > 0 && bound > 0 && chosen.steadyAt == never {
		chosen.steadyAt = m.now + bound
	}
}

// reorder handles a change of priorities. If the priority in use still exists and nothing above it
// has changed, all delays continue. Otherwise, priorities that were added above it are candidates.
func (m *Model) reorder(before []string) {
	is, was := slices.Index(m.config.Priorities, m.inUse), slices.Index(before, m.inUse)
	if m.children[m.inUse] == nil {
		is = none
	}
	m.currentPriority = is
	if is >= 0 && was >= 0 && slices.Equal(m.config.Priorities[:is], before[:was]) {
		return
	}
	m.serving = nil
	for name, c := range m.children {
		c.waits = c.waits && slices.Index(m.config.Priorities, name) >= 0 && slices.Index(m.config.Priorities, name) < is
		c.failures, c.steadyAt = 0, never
	}
	candidates := m.candidates
	m.candidates = nil
	for p, name := range m.config.Priorities {
		switch {
		case p >= is:
		case was >= 0 && slices.Contains(before[:was], name):
			if slices.Contains(candidates, name) {
				m.candidates = append(m.candidates, name)
			}
		default:
			m.candidates = append(m.candidates, name)
			if c := m.children[name]; c != nil {
				c.late = false
				if c.good() {
					c.readyLongAt = m.now
				}
			}
		}
	}
}

// candidate reports whether the priority was added above a priority in use that is READY or
// reconnects. Without fastFailover and a failback delay, only late children are candidates. A
// priority that is READY or in use is no longer a candidate.
func (t *choice) candidate(priority int) bool {
	name := t.config.Priorities[priority]
	is := t.always() && slices.Contains(t.candidates, name) || t.children[name].late
	if !is || t.before <= priority {
		return false
	}
	inUse := t.children[t.config.Priorities[t.before]]
	return inUse.ready() || inUse.reconnecting()
}

// always reports whether every added priority is a candidate, as with fastFailover or a failback
// delay.
func (t *choice) always() bool {
	return t.config.FastFailover || t.config.FailbackDelay > 0 || t.config.FailbackJitter > 0
}

// late reports whether the choice would move calls from a working priority to a higher one that is
// still connecting. Only the choice after an update may do that.
func (t *choice) late(chosen int) bool {
	if t.force || t.before <= chosen || len(t.Rows) > 0 { // rows change this behaviour
		return false
	}
	child, inUse := t.children[t.config.Priorities[chosen]], t.children[t.config.Priorities[t.before]]
	return child.connectivityState() == Connecting && !child.late && !child.poor() && (inUse.good() || inUse.small())
}

// rather returns the priority that calls wait for. If the chosen one can take no calls, calls wait
// for the first candidate.
func (t *choice) rather(candidate, chosen int) int {
	c := t.children[t.config.Priorities[chosen]]
	if candidate != none && chosen != t.before && !c.ready() && !c.poor() {
		for p, name := range t.config.Priorities {
			t.tiers[p] = t.children[name]
		}
		return candidate
	}
	return chosen
}

func (m *Model) noCandidate(name string) {
	m.candidates = slices.DeleteFunc(m.candidates, func(other string) bool { return other == name })
	m.children[name].late = false
}
