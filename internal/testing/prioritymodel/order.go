package prioritymodel

import "slices"

// docs/tiers.md has a table of last resorts. Its first row is A56. The methods below are the
// conditions of the table.

// good reports whether the child is READY with enough READY endpoints (MinReady), and is neither
// emptied nor half-open.
func (c *child) good() bool { return c.ready() && c.reported.Condition == "" && !c.lacking }

// small reports whether the child would be good if it had enough READY endpoints.
func (c *child) small() bool { return c.ready() && c.reported.Condition == "" && c.lacking }

// failing reports whether the child is READY, and emptied or half-open.
func (c *child) failing() bool { return c.ready() && c.reported.Condition != "" }

func (c *child) ready() bool { return c.connectivityState() == Ready }

// poor reports whether the child is small or failing. While it is IDLE or CONNECTING, it
// is poor if it was so when it was last READY, or if all of its endpoints were ejected since.
func (c *child) poor() bool {
	again := c.connectivityState() == Idle || c.connectivityState() == Connecting
	return c.small() || c.failing() || again && c.wasPoor
}

// timeLeft reports whether the child may still connect. It is IDLE, or it is CONNECTING and its
// failover timer is pending.
func (c *child) timeLeft() bool {
	return c.connectivityState() == Idle || c.connectivityState() == Connecting && c.FailoverTimerPending()
}

// reconnecting reports whether the child in use is no longer READY but may still connect.
func (c *child) reconnecting() bool {
	return c.name == c.m.inUse && c.readySinceFailure && c.timeLeft()
}

// wake calls ExitIdle of an IDLE child, at most once between two of its reports.
func (c *child) wake() {
	if c.connectivityState() == Idle && !c.woken {
		c.woken = true
		c.exitIdle()
	}
}

// updateLacking sets lacking when fewer endpoints are READY than MinReady requires, and clears it
// when MinReadyRecovery is reached, if that is higher.
func (c *child) updateLacking() {
	const rounding = 1e-12 // shares are rounded
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

// wouldDo reports whether the child would have enough READY endpoints if the unproven ones counted.
func (c *child) wouldDo() bool {
	const rounding = 1e-12
	least := max(c.m.config.MinReady, c.m.config.MinReadyRecovery)
	return 1-c.reported.Missing+c.reported.Unproven+rounding >= least
}

// choice has the variables of one run of ChoosePriority.
type choice struct {
	*Model
	before int      // the priority in use before the choice; none if the priorities have changed
	tiers  []*child // the child of each priority; nil if it does not exist or must not be chosen
	passed bool     // fastFailover has skipped a priority
}

// of returns the priorities whose children are of this kind, in order.
func (t *choice) of(kind func(*child) bool) []int {
	var priorities []int
	for p, c := range t.tiers {
		if c != nil && kind(c) {
			priorities = append(priorities, p)
		}
	}
	return priorities
}

func (t *choice) first(priorities []int) int {
	if len(priorities) == 0 {
		return len(t.tiers)
	}
	return priorities[0]
}

// ChoosePriority follows the pseudo-code and the table in docs/tiers.md. The first row that applies
// decides. If it applies to several priorities, the highest is chosen, unless the row says
// otherwise.
func (m *Model) ChoosePriority() {
	if len(m.config.Priorities) == 0 {
		m.inUse = ""
		m.updateState("empty", fails("priority policy has empty priority list"))
		return
	}
	t := &choice{Model: m, before: m.currentPriority}
	m.currentPriority = none
	for {
		chosen, missing := t.choiceOfA56()
		poor := t.first(t.of((*child).poor))
		if missing && poor > chosen {
			m.create(m.config.Priorities[chosen], t.passed)
			continue
		}
		if !missing && t.late(chosen) {
			m.children[m.config.Priorities[chosen]].late = true
			continue
		}
		if !missing && poor > chosen { // row 1: A56 decides
			m.Decided(1)
			state := m.children[m.config.Priorities[chosen]].connectivityState()
			m.SetCurrentPriority(chosen, state == Ready || state == Idle)
			return
		}
		row, chosen := t.lastResort(chosen)
		if t.lookBelow(row, poor, chosen) {
			continue
		}
		m.Decided(row)
		m.SetCurrentPriority(chosen, row == 3)
		return
	}
}

// choiceOfA56 is ChoosePriority of the pseudo-code with fastFailover, but without the actions.
// missing reports whether the chosen priority has no child yet.
func (t *choice) choiceOfA56() (chosen int, missing bool) {
	t.tiers, t.passed = make([]*child, len(t.config.Priorities)), false
	aside, stood := none, false
	for priority, childName := range t.config.Priorities {
		t.tiers[priority] = t.children[childName]
	}
	for priority, childName := range t.config.Priorities {
		child, ok := t.children[childName]
		if !ok && (stood || t.protected(priority) && slices.ContainsFunc(t.config.Priorities[:priority], t.mayTakeOver)) {
			continue
		}
		if !ok {
			return priority, true
		}
		child.MaybeReactivate()
		if t.heldBack(child, priority) {
			t.tiers[priority] = nil
			continue
		}
		if t.candidate(priority) && !child.ready() && !child.poor() {
			child.wake()
			passed := t.notWaitedFor(child, priority, t.passed)
			t.passed = t.passed || passed
			t.tiers[priority] = nil
			stood = stood || child.timeLeft()
			if aside == none && child.timeLeft() && !passed {
				aside = priority
			}
			continue
		}
		if !child.poor() && t.notWaitedFor(child, priority, t.passed) {
			child.wake()
			t.passed = true
			stood = stood || slices.Contains(t.candidates, childName)
			continue
		}
		if child.connectivityState() == Ready || child.connectivityState() == Idle {
			return t.rather(aside, priority), false
		}
		if child.FailoverTimerPending() {
			return t.rather(aside, priority), false
		}
	}
	for priority, childName := range t.config.Priorities {
		child := t.children[childName]
		if child.connectivityState() == Connecting && !t.Rows["p-connecting"] {
			return priority, false
		}
	}
	return len(t.config.Priorities) - 1, false
}

// heldBack reports whether a child must not be chosen yet because of the failback delay.
func (t *choice) heldBack(child *child, priority int) bool {
	if !t.protected(priority) {
		return false
	}
	if child.good() {
		child.waits = t.now < child.readyLongAt
		return child.waits
	}
	child.wake()
	return true
}

// protected reports whether a failback delay keeps calls on the priority in use. It does if that
// priority is good and below the given one.
func (t *choice) protected(priority int) bool {
	return t.config.FailbackDelay+t.config.FailbackJitter > 0 && t.before > priority && t.children[t.config.Priorities[t.before]].good()
}

// lastResort implements rows 2 to 7 of the table.
func (t *choice) lastResort(chosenByA56 int) (row, chosen int) {
	good, small, failing := t.of((*child).good), t.of((*child).small), t.of((*child).failing)
	for _, r := range t.of((*child).reconnecting) {
		// Row 2 applies if the priority was good, no priority above it is good or small, and
		// fastFailover does not skip it.
		passed := false
		for p, name := range t.config.Priorities[:r+1] {
			c := t.children[name]
			passed = c != nil && t.notWaitedFor(c, p, passed) || passed && p < r
		}
		if !t.tiers[r].wasPoor && min(t.first(good), t.first(small)) > r && !passed {
			return 2, r
		}
	}
	for _, g := range good {
		return 3, g
	}
	for _, s := range small {
		return 4, s
	}
	for _, r := range t.of((*child).reconnecting) {
		return 5, r
	}
	for i, f := range failing {
		// Row 6 chooses the priority that was good or small most recently. If there is none, it
		// chooses the highest.
		if i == 0 || t.tiers[f].lastWell > t.tiers[chosen].lastWell {
			row, chosen = 6, f
		}
	}
	if row == 6 {
		return row, chosen
	}
	return 7, chosenByA56
}

// lookBelow makes IDLE priorities connect, beginning with the first poor one. It stops at a good
// priority, and at one that row 2 waits for. gRFC A56 creates a child only when it is needed, so
// lookBelow creates one only if no higher priority may still connect. created reports whether it
// did.
func (t *choice) lookBelow(row, poor, chosen int) (created bool) {
	early := len(t.of((*child).good)) > 0
	for p, name := range t.config.Priorities {
		c, ok := t.children[name]
		switch {
		case p < poor, p > chosen && (row == 2 || row == 3):
		case ok:
			c.MaybeReactivate()
			c.wake()
		case !slices.ContainsFunc(t.config.Priorities[:p], t.mayConnect):
			t.create(name, early)
			return true
		}
	}
	return false
}

func (m *Model) mayConnect(name string) bool {
	return m.children[name] != nil && m.children[name].timeLeft()
}

func (m *Model) mayTakeOver(name string) bool {
	return m.mayConnect(name) || m.children[name] != nil && m.children[name].good()
}

func (m *Model) create(name string, early bool) {
	child := m.CreateChild(name)
	child.early = early
	m.children[name] = child
	child.Update()
}
