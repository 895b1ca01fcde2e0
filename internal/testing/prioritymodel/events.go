package prioritymodel

// Report makes a child's policy report a state. During a graceful switch, there are two policies,
// and id says which one.
func (m *Model) Report(child, id string, r Report) {
	c, s := m.children[child], m.Stubs.Find(id)
	if c == nil || s == nil {
		return
	}
	s.LastReport = r
	m.reported(c, s, r)
	m.drain()
}

func (m *Model) reported(c *child, s *Stub, r Report) {
	if !s.Closed && c.policies.Reported(s, r) {
		c.handle(c.policies.Current.Handled)
	}
}

func (m *Model) ExitIdle() {
	for _, name := range m.names() {
		c := m.children[name]
		if name == m.childInUse || m.Rows["p-exit-idle"] && !c.deactivated() {
			c.exitIdle()
		}
	}
}

func (m *Model) ResolverError(err string) {
	if len(m.children) == 0 && !m.closed && !m.Rows["p-no-child"] {
		m.publish(failedReport("priority: the resolver failed: " + err))
	}
	for _, name := range m.names() {
		if c := m.children[name]; !c.deactivated() || !m.Rows["p-resolver-error"] {
			c.policies.Latest().Errors++
			m.log("resolver-error", name)
		}
	}
}

func (m *Model) UpdateWithout() {
	if m.version == 0 && !m.Rows["p-no-config"] {
		m.publish(failedReport("priority: configuration of type"))
	}
}

// ResolveNow handles a child's request for re-resolution. A56 on ignore_reresolution_requests: "If
// true, will ignore reresolution requests from this child."
func (m *Model) ResolveNow(child string) {
	if c := m.children[child]; c != nil && m.forwardsResolveNow(c) {
		m.log("resolve", child)
	}
}

func (m *Model) forwardsResolveNow(c *child) bool {
	config, configured := m.config.Children[c.name]
	switch {
	case !configured && !m.Rows["p-resolve-now-removed"]:
		return false
	case c.ignoresStale && !m.Rows["p-resolve-now-returned"]:
		return !config.Ignore
	case c.deactivated() && !m.Rows["p-update-deactivated"]:
		return !config.Ignore
	}
	return !c.ignoresReResolution
}

func (m *Model) Close() {
	m.closed = true
	for _, name := range m.names() {
		m.children[name].destroy()
	}
	m.childInUse = ""
}
