package differential

import (
	"maps"
	"slices"
	"strings"

	model "github.com/understudy-lb/understudy/internal/testing/prioritymodel"
)

type targetChild struct {
	model.Policies
	reported string
	// state is the state that the policy assumes for the child, and pick the result of a call to it.
	state, pick string
	rejected    bool // the child has rejected its last update, and has reported no state since
	exitedIdle  bool // ExitIdle was called on the child, and it has reported no state since
}

// current returns the state that the policy assumes for the child now, and the result of a call to
// the child.
func (c *targetChild) current() (state, pick string) {
	if c.rejected {
		return failed, "fail: no good"
	}
	return c.state, c.pick
}

// targetModel is a simple model of weighted_target. It predicts which children get calls, but not
// how many calls. In the given rows of docs/differences.md, it behaves like grpc-go.
type targetModel struct {
	rows map[string]bool

	stubs         model.Stubs
	version       int
	rejects       map[string]bool
	updated       bool
	onUpdate      map[string]string
	children      map[string]*targetChild
	queue         []func()
	last          string
	reresolutions int
}

// predictTargets returns the expected result of each step of a schedule and of Close. In the given
// rows of docs/differences.md, the model behaves like grpc-go. It does not predict the states that
// are published within a step.
func predictTargets(rows map[string]bool, schedule []string) []stepResult {
	m := &targetModel{
		rows:     rows,
		rejects:  map[string]bool{},
		onUpdate: map[string]string{},
		children: map[string]*targetChild{},
	}
	var all []stepResult
	for _, step := range schedule {
		returned := m.applyStep(step)
		all = append(all, stepResult{nil, m.last, returned, m.stubs.Summary(), m.reresolutions})
	}
	for _, c := range m.children {
		c.Close()
	}
	return append(all, stepResult{nil, m.last, false, m.stubs.Summary(), m.reresolutions})
}

func (m *targetModel) applyStep(step string) (returned bool) {
	words := strings.Fields(step)
	switch words[0] {
	case "update":
		m.updated = true
		return m.update(words[1:])
	case "refuse", "accept":
		m.rejects[words[1]] = words[0] == "refuse"
	case "on-update":
		m.onUpdate[words[1]] = words[2]
	case "exit-idle":
		for _, c := range m.children {
			c.Latest().ExitIdles++
		}
	case "resolver-error":
		for _, c := range m.children {
			c.Latest().Errors++
		}
		if len(m.children) == 0 && !m.rows["w-no-child"] {
			m.last = failed + " fail: no such host"
		}
	case "resolve-now":
		if m.stubs.Find(words[1]) != nil {
			m.reresolutions++
		}
	case "update-without":
		if !m.updated && !m.rows["w-no-config"] {
			m.last = failed + " fail: no configuration"
		}
		return true
	case "report":
		if s := m.stubs.Find(words[1]); s != nil {
			m.queueReport(m.children[nameOf(s.ID)], s, words[2])
			m.drain()
			m.publish()
		}
	}
	return false
}

func (m *targetModel) queueReport(c *targetChild, s *model.Stub, state string) {
	m.queue = append(m.queue, func() {
		if !s.Closed && c.Reported(s, model.Report{State: state, Text: pickOf(s.ID, state)}) {
			m.handle(c, c.Current.Handled.State, c.Current.Handled.Text)
		}
	})
}

func (m *targetModel) drain() {
	for len(m.queue) > 0 {
		f := m.queue[0]
		m.queue = m.queue[1:]
		f()
	}
}

func (m *targetModel) handle(c *targetChild, state, pick string) {
	before := c.state
	if m.rows["w-sticky"] {
		before, c.pick = c.reported, pick
	}
	c.reported, c.rejected, c.exitedIdle = state, false, false
	if before != failed || state != connecting {
		c.state, c.pick = state, pick
	}
}

func (m *targetModel) update(words []string) (returned bool) {
	m.version++
	ids := map[string]string{}
	for _, word := range words {
		id, _, _ := strings.Cut(word, "=")
		ids[nameOf(id)] = id
	}
	for name, c := range m.children {
		if id, ok := ids[name]; !ok || m.rows["w-type"] && c.Latest().ID != id {
			c.Close()
			delete(m.children, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		if refused := m.updateChild(name, ids[name]); refused {
			returned = true
		}
	}
	m.drain()
	m.publish()
	return returned && m.state() == failed
}

// updateChild updates a child. It reports whether the child has rejected the update.
func (m *targetModel) updateChild(name, id string) (refused bool) {
	c := m.children[name]
	if c == nil {
		c = &targetChild{reported: connecting, state: connecting, pick: "queue"}
		m.children[name] = c
	}
	s := c.Latest()
	if s == nil || s.ID != id {
		s = m.stubs.Build(id)
		c.SwitchTo(s)
	}
	s.Version = m.version
	c.rejected = false
	if state, ok := m.onUpdate[name]; ok {
		m.queueReport(c, s, state)
	}
	if !m.rejects[name] || m.rows["w-refused"] {
		return false
	}
	m.drain() // the policy handles the child's report before its rejection
	c.Refused(errRefused.Error())
	c.rejected = c.reported != ready && c.reported != idle
	return true
}

// state returns the state of the policy. This is the first of READY, CONNECTING and IDLE that is
// the current state of a child. If there is none, the state is TRANSIENT_FAILURE.
func (m *targetModel) state() string {
	for _, state := range []string{ready, connecting, idle} {
		for _, c := range m.children {
			if counts, _ := c.current(); counts == state {
				return state
			}
		}
	}
	return failed
}

// exitIdleChildren makes IDLE children connect if the policy is READY or CONNECTING.
func (m *targetModel) exitIdleChildren() {
	if state := m.state(); m.rows["w-wake"] || state != ready && state != connecting {
		return
	}
	for _, c := range m.children {
		if counts, _ := c.current(); counts == idle && !c.exitedIdle {
			c.exitedIdle = true
			c.Latest().ExitIdles++
		}
	}
}

func (m *targetModel) publish() {
	m.exitIdleChildren()
	state := m.state()
	var picks []string
	for _, c := range m.children {
		if counts, pick := c.current(); counts == state && !slices.Contains(picks, pick) {
			picks = append(picks, pick)
		}
	}
	slices.Sort(picks)
	switch {
	case len(m.children) == 0:
		picks = []string{"fail: no targets"}
	case state == connecting, state == idle && m.rows["w-idle"]:
		picks = []string{"queue"}
	}
	m.last = state + " " + strings.Join(picks, ", ")
}
