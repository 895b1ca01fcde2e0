package prioritymodel

import (
	"fmt"
)

// Update implements A56's section "Configuration Updates". It returns the errors that children
// returned from their updates.
func (m *Model) Update(config Config) []string {
	if m.closed {
		return nil
	}
	m.BeginUpdate(config)
	return m.EndUpdate()
}

func (m *Model) BeginUpdate(config Config) {
	m.version++
	m.errors = nil
	before := m.config.Priorities
	m.config = config
	if m.Rows["p-refused-at-once"] {
		m.config.Priorities = before
		m.updateChildren(true, false)
		m.config.Priorities, m.updating = config.Priorities, true
		m.updateChildren(false, true)
	} else {
		m.updating = true
		m.updateChildren(true, true)
	}
}

func (m *Model) EndUpdate() []string {
	m.drain()
	m.updating, m.forcePublish = false, true
	m.choose()
	m.forcePublish = false
	errors := m.errors
	if m.lastPublished.State != TransientFailure || m.Rows["p-update-error"] {
		errors = nil
	}
	m.drain()
	return errors
}

func (m *Model) updateChildren(update, remove bool) {
	for _, name := range m.names() {
		c := m.children[name]
		config, configured := m.config.Children[name]
		if remove {
			c.ignoresStale = c.ignoresStale || c.removed && configured
		}
		switch {
		case configured && update && c.deactivated() && m.Rows["p-update-deactivated"]:
			c.ignoresStale = c.ignoresStale || c.policies.Latest().ID != config.Policy
		case configured && update && m.Rows["p-type"] && c.policies.Latest().ID != config.Policy:
			c.destroy()
		case configured && update:
			c.Update()
		case !configured && remove:
			c.remove()
		}
		if configured && remove {
			c.removed = false
		}
	}
}

func (c *child) id() string {
	if config, ok := c.model.config.Children[c.name]; ok {
		return config.Policy
	}
	return c.name // row p-refused-at-once: the child is only in the previous configuration
}

// Update follows A56's pseudo-code. It updates the child's policy, which reports states and returns
// an error as Model.React says.
func (c *child) Update() {
	m, hadUpdateErr := c.model, c.updateErr != ""
	c.updateErr = ""
	verb := "update"
	s := c.policies.Latest()
	if s == nil {
		verb = "create"
	}
	if s == nil || s.ID != c.id() {
		s = m.Stubs.Build(c.id())
		c.policies.SwitchTo(s)
		c.ignoresStale = false
	}
	config, configured := m.config.Children[c.name]
	s.Version = m.version
	if !configured { // row p-refused-at-once: the child gets the previous configuration
		s.Version--
	}
	if !c.ignoresStale {
		c.ignoresReResolution = config.Ignore
	}
	m.log(verb, c.name)
	reaction := m.React(c.name)
	for _, r := range reaction.Reports {
		m.policyReport(c, s, r, m.Rows["p-inside-update"])
	}
	switch {
	case reaction.Err != "":
		c.updateFailed(reaction.Err)
	case hadUpdateErr && c.reported.State == TransientFailure:
		c.lastError = c.reported.Err
	}
}

func (c *child) updateFailed(err string) {
	m := c.model
	m.errors = append(m.errors, fmt.Sprintf("priority: child %q refused its update: %s", c.name, err))
	c.policies.Refused(err)
	switch {
	case m.Rows["p-refused-at-once"] && !m.updating && !m.choosing:
		c.setUpdateError(err)
	case m.Rows["p-refused-first"]:
		m.delayedErrors = append(m.delayedErrors, func() { c.setUpdateErrorLater(err) })
	case m.Rows["p-inside-update"]:
		m.delayed = append(m.delayed, func() { c.setUpdateErrorLater(err) })
	default:
		c.setUpdateError(err)
	}
}

func (c *child) setUpdateErrorLater(err string) {
	if c.model.children[c.name] == c {
		c.setUpdateError(err)
	}
}

// policyReport handles a report at once, or in the next call of drain if delay is set.
func (m *Model) policyReport(c *child, s *Stub, r Report, delay bool) {
	s.LastReport = r
	if delay {
		m.delayed = append(m.delayed, func() { m.reported(c, s, r) })
		return
	}
	m.reported(c, s, r)
}

func (m *Model) Updating(child string) *Stub {
	if c := m.children[child]; c != nil {
		return c.policies.Latest()
	}
	return nil
}
