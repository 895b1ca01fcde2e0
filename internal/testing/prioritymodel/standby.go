package prioritymodel

// standbys returns the names of the standbys, an addition to A56. These are the remaining near
// groups of the source's priority in use, and after it as many of the source's priorities as
// WarmStandby says.
func (m *Model) standbys() []string {
	sources := map[int]bool{}
	last := m.currentPriority
	for p := last + 1; p < len(m.config.Priorities); p++ {
		if m.sourcePriority(p) != m.sourcePriority(m.currentPriority) {
			sources[m.sourcePriority(p)] = true
		}
		if m.config.WarmStandby > 0 && len(sources) <= m.config.WarmStandby {
			last = p
		}
	}
	return m.config.Priorities[m.currentPriority+1 : last+1]
}

func (m *Model) sourcePriority(priority int) int {
	if m.config.SourcePriorities == nil {
		return priority
	}
	return m.config.SourcePriorities[priority]
}

func (m *Model) connectsStandbys(inUse *child) bool {
	state := inUse.connectivityState()
	return state == Ready || m.config.Overflow && state != Idle
}

func (m *Model) keepStandbys(inUse *child) {
	for _, name := range m.standbys() {
		standby := m.children[name]
		if standby == nil {
			continue
		}
		if m.connectsStandbys(inUse) {
			standby.MaybeReactivate()
		}
		if inUse.connectivityState() != Idle && !standby.deactivated() {
			standby.wake()
		}
	}
}

func (m *Model) startStandby() (created bool) {
	inUse := m.children[m.childInUse]
	if inUse == nil || !m.connectsStandbys(inUse) {
		return false
	}
	for _, name := range m.standbys() {
		if m.children[name] == nil {
			m.create(name)
			return true
		}
	}
	return false
}
