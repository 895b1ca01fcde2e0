package prioritymodel

import (
	"fmt"
)

// Update is "Configuration Updates" of the gRFC. It returns the errors of the children.
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
	for _, c := range m.children {
		good := c.good()
		c.updateLacking()
		c.waits = c.waits && c.good()
		c.rate(good)
		c.hurry()
	}
	m.reorder(before)
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
	m.updating, m.force = false, true
	m.choose()
	m.force = false
	errors := m.errors
	if m.last.State != TransientFailure || m.Rows["p-update-error"] {
		errors = nil
	}
	m.drain()
	return errors
}

// updateChildren "will iterate over its existing children" and updates or removes them.
func (m *Model) updateChildren(update, remove bool) {
	for _, name := range m.names() {
		c := m.children[name]
		config, configured := m.config.Children[name]
		if remove {
			c.forgotten = c.forgotten || c.removed && configured
		}
		switch {
		case configured && update && c.deactivated() && m.Rows["p-update-deactivated"]:
			c.forgotten = c.forgotten || c.policies.Latest().ID != config.Policy
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
	if config, ok := c.m.config.Children[c.name]; ok {
		return config.Policy
	}
	return c.name // row p-refused-at-once: the child belongs to the previous configuration
}

// Update implements the function of this name in the pseudo-code of gRFC A56. It updates the
// child's policy, which then behaves as React says.
func (c *child) Update() {
	m, refused := c.m, c.refusal != ""
	c.refusal = ""
	verb := "update"
	s := c.policies.Latest()
	if s == nil {
		verb = "create"
	}
	if s == nil || s.ID != c.id() {
		s = m.Stubs.Build(c.id())
		c.policies.SwitchTo(s)
		c.forgotten = false
	}
	config, configured := m.config.Children[c.name]
	s.Version = m.version
	if !configured { // row p-refused-at-once: the update has the previous configuration
		s.Version--
	}
	if !c.forgotten {
		c.ignored = config.Ignore
	}
	m.log(verb, c.name)
	reaction := m.React(c.name)
	for _, r := range reaction.Reports {
		m.say(c, s, r, m.Rows["p-inside-update"])
	}
	switch {
	case reaction.Err != "":
		c.refused(reaction.Err)
	case refused && c.reported.State == TransientFailure:
		c.lastError = c.reported.Err // the error of the earlier update no longer applies
	}
}

// refused handles the error of a child's update, after the reports that the child made in that
// update.
func (c *child) refused(err string) {
	m := c.m
	m.errors = append(m.errors, fmt.Sprintf("priority: child %q refused its update: %s", c.name, err))
	c.policies.Refused(err)
	switch {
	case m.Rows["p-refused-at-once"] && !m.updating && !m.choosing:
		c.refuse(err)
	case m.Rows["p-refused-first"]:
		m.refusals = append(m.refusals, func() { c.refuseLater(err) })
	case m.Rows["p-inside-update"]:
		m.queue = append(m.queue, func() { c.refuseLater(err) })
	default:
		c.refuse(err)
	}
}

func (c *child) refuseLater(err string) {
	if c.m.children[c.name] == c {
		c.refuse(err)
	}
}

// say makes a policy report a state. If later is set, the model handles the report later.
func (m *Model) say(c *child, s *Stub, r Report, later bool) {
	s.Said = r
	if later {
		m.queue = append(m.queue, func() { m.reported(c, s, r) })
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
