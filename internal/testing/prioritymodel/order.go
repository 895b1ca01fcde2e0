package prioritymodel

import "slices"

// The first methods below implement the terms of docs/tiers.md, and the methods of choice implement
// its table of last resorts, whose first row is the choice of gRFC A56.

// good reports whether the child is READY with enough READY endpoints (MinReady), and is neither
// emptied nor half-open.
func (c *child) good() bool { return c.ready() && c.reported.Condition == "" && !c.tooFewReady }

// belowMinReady reports whether the child is what docs/tiers.md calls small: it is READY with
// too few READY endpoints (MinReady), and is neither emptied nor half-open.
func (c *child) belowMinReady() bool { return c.ready() && c.reported.Condition == "" && c.tooFewReady }

// failing reports whether the child is READY, and emptied or half-open.
func (c *child) failing() bool { return c.ready() && c.reported.Condition != "" }

func (c *child) ready() bool { return c.connectivityState() == Ready }

// degraded reports whether the child is what docs/tiers.md calls poor: it is belowMinReady or
// failing, or it is IDLE or CONNECTING and was degraded when it was last READY, or has had all of
// its endpoints ejected since.
func (c *child) degraded() bool {
	mayReconnect := c.connectivityState() == Idle || c.connectivityState() == Connecting
	return c.belowMinReady() || c.failing() || mayReconnect && c.wasDegraded
}

// mayStillConnect reports whether the child is IDLE, or is CONNECTING and its failover timer is
// pending.
func (c *child) mayStillConnect() bool {
	return c.connectivityState() == Idle || c.connectivityState() == Connecting && c.FailoverTimerPending()
}

// reconnecting reports whether the child in use is no longer READY but may still connect.
func (c *child) reconnecting() bool {
	return c.name == c.model.childInUse && c.readySinceFailure && c.mayStillConnect()
}

// wake calls ExitIdle of an IDLE child, unless this has happened since the child's last report.
func (c *child) wake() {
	if c.connectivityState() == Idle && !c.exitIdleCalled {
		c.exitIdleCalled = true
		c.exitIdle()
	}
}

// updateTooFewReady sets tooFewReady when the READY share falls below MinReady, and clears it when
// the share has reached both MinReady and MinReadyRecovery.
func (c *child) updateTooFewReady() {
	const rounding = 1e-12 // the maximum rounding error of a share
	readyShare, minReady, recovery := 1-c.reported.Missing+rounding, c.model.config.MinReady, c.model.config.MinReadyRecovery
	switch {
	case minReady == 0 || c.reported.State != Ready:
		c.tooFewReady = false
	case readyShare < minReady:
		c.tooFewReady = true
	case readyShare >= recovery:
		c.tooFewReady = false
	}
}

// enoughIfProven reports whether the child would have enough READY endpoints if the unproven
// endpoints counted.
func (c *child) enoughIfProven() bool {
	const rounding = 1e-12
	required := max(c.model.config.MinReady, c.model.config.MinReadyRecovery)
	return 1-c.reported.Missing+c.reported.Unproven+rounding >= required
}

// choice has the variables of one run of ChoosePriority.
type choice struct {
	*Model
	previous int      // the priority in use before the choice; none if no such priority exists
	eligible []*child // the child of each priority; nil if it does not exist or must not be chosen
	skipped  bool     // fastFailover has skipped a priority
}

// prioritiesWhere returns the priorities with an eligible child for which matches returns true, in
// order.
func (t *choice) prioritiesWhere(matches func(*child) bool) []int {
	var priorities []int
	for p, c := range t.eligible {
		if c != nil && matches(c) {
			priorities = append(priorities, p)
		}
	}
	return priorities
}

func (t *choice) first(priorities []int) int {
	if len(priorities) == 0 {
		return len(t.eligible)
	}
	return priorities[0]
}

// ChoosePriority implements the function of this name in gRFC A56, extended by the table in
// docs/tiers.md. The first row of the table that applies decides. If the row applies to several
// priorities, ChoosePriority chooses the highest, unless the row says otherwise.
func (m *Model) ChoosePriority() {
	if len(m.config.Priorities) == 0 {
		m.childInUse = ""
		m.updateState("empty", failedReport("priority policy has empty priority list"))
		return
	}
	t := &choice{Model: m, previous: m.currentPriority}
	m.currentPriority = none
	for {
		chosen, missing := t.choiceOfA56()
		degraded := t.first(t.prioritiesWhere((*child).degraded))
		if missing && degraded > chosen {
			m.create(m.config.Priorities[chosen], t.skipped)
			continue
		}
		if !missing && t.leavesWorkingPriority(chosen) {
			m.children[m.config.Priorities[chosen]].mustConnectFirst = true
			continue
		}
		if !missing && degraded > chosen { // row 1: A56 decides
			m.Decided(1)
			state := m.children[m.config.Priorities[chosen]].connectivityState()
			m.SetCurrentPriority(chosen, state == Ready || state == Idle)
			return
		}
		row, chosen := t.lastResort(chosen)
		if t.connectBelow(row, degraded, chosen) {
			continue
		}
		m.Decided(row)
		m.SetCurrentPriority(chosen, row == 3)
		return
	}
}

// choiceOfA56 returns the priority that ChoosePriority of the pseudo-code would choose, extended by
// fastFailover, but does not switch to it. missing reports whether this priority has no child yet.
func (t *choice) choiceOfA56() (chosen int, missing bool) {
	t.eligible, t.skipped = make([]*child, len(t.config.Priorities)), false
	waitingCandidate, candidateMayConnect := none, false
	for priority, childName := range t.config.Priorities {
		t.eligible[priority] = t.children[childName]
	}
	for priority, childName := range t.config.Priorities {
		child, ok := t.children[childName]
		if !ok && (candidateMayConnect || t.protected(priority) && slices.ContainsFunc(t.config.Priorities[:priority], t.mayTakeOver)) {
			continue
		}
		if !ok {
			return priority, true
		}
		child.MaybeReactivate()
		if t.heldBack(child, priority) {
			t.eligible[priority] = nil
			continue
		}
		if t.candidate(priority) && !child.ready() && !child.degraded() {
			child.wake()
			skip := t.skippedByFastFailover(child, priority, t.skipped)
			t.skipped = t.skipped || skip
			t.eligible[priority] = nil
			candidateMayConnect = candidateMayConnect || child.mayStillConnect()
			if waitingCandidate == none && child.mayStillConnect() && !skip {
				waitingCandidate = priority
			}
			continue
		}
		if !child.degraded() && t.skippedByFastFailover(child, priority, t.skipped) {
			child.wake()
			t.skipped = true
			candidateMayConnect = candidateMayConnect || slices.Contains(t.candidates, childName)
			continue
		}
		if child.connectivityState() == Ready || child.connectivityState() == Idle {
			return t.waitTarget(waitingCandidate, priority), false
		}
		if child.FailoverTimerPending() {
			return t.waitTarget(waitingCandidate, priority), false
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

// heldBack reports whether a child must not be chosen yet, because its failback delay has not
// ended.
func (t *choice) heldBack(child *child, priority int) bool {
	if !t.protected(priority) {
		return false
	}
	if child.good() {
		child.waitsForFailback = t.now < child.failbackAt
		return child.waitsForFailback
	}
	child.wake()
	return true
}

// protected reports whether calls stay on the priority in use during the failback delay of the
// given priority. This is so if the priority in use is lower and good.
func (t *choice) protected(priority int) bool {
	return t.config.FailbackDelay+t.config.FailbackJitter > 0 && t.previous > priority && t.children[t.config.Priorities[t.previous]].good()
}

// lastResort implements rows 2 to 7 of the table in docs/tiers.md. It returns the row that applies,
// and the priority that the row chooses.
func (t *choice) lastResort(chosenByA56 int) (row, chosen int) {
	good, below, failing := t.prioritiesWhere((*child).good), t.prioritiesWhere((*child).belowMinReady), t.prioritiesWhere((*child).failing)
	for _, r := range t.prioritiesWhere((*child).reconnecting) {
		// Row 2 applies if this priority was good, no higher priority is good or belowMinReady, and
		// fastFailover does not skip this priority.
		skipped := false
		for p, name := range t.config.Priorities[:r+1] {
			c := t.children[name]
			skipped = c != nil && t.skippedByFastFailover(c, p, skipped) || skipped && p < r
		}
		if !t.eligible[r].wasDegraded && min(t.first(good), t.first(below)) > r && !skipped {
			return 2, r
		}
	}
	for _, p := range good {
		return 3, p
	}
	for _, p := range below {
		return 4, p
	}
	for _, r := range t.prioritiesWhere((*child).reconnecting) {
		return 5, r
	}
	for i, f := range failing {
		// Row 6 chooses the failing priority that was good or belowMinReady most recently. If none
		// ever was, row 6 chooses the highest failing priority.
		if i == 0 || t.eligible[f].lastGoodCount > t.eligible[chosen].lastGoodCount {
			row, chosen = 6, f
		}
	}
	if row == 6 {
		return row, chosen
	}
	return 7, chosenByA56
}

// connectBelow makes IDLE priorities connect, beginning with the first degraded priority. If row 2
// or 3 has chosen a priority, connectBelow stops there. It creates a missing child only if no
// higher priority may still connect, because gRFC A56 creates children as late as possible. created
// reports whether it has created a child.
func (t *choice) connectBelow(row, degraded, chosen int) (created bool) {
	early := len(t.prioritiesWhere((*child).good)) > 0
	for p, name := range t.config.Priorities {
		c, ok := t.children[name]
		switch {
		case p < degraded, p > chosen && (row == 2 || row == 3):
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
	return m.children[name] != nil && m.children[name].mayStillConnect()
}

func (m *Model) mayTakeOver(name string) bool {
	return m.mayConnect(name) || m.children[name] != nil && m.children[name].good()
}

func (m *Model) create(name string, early bool) {
	child := m.CreateChild(name)
	child.createdEarly = early
	m.children[name] = child
	child.Update()
}
