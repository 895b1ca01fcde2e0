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
	// counts is the state that the policy assumes for the child. pick is the result of a call.
	counts, pick string
	refused      bool // the child has rejected its last update and not reported since
	woken        bool // the child was asked to connect and has not reported since
}

// now returns the child's present state, as the policy counts it, and the result of a call to it.
func (c *targetChild) now() (counts, pick string) {
	if c.refused {
		return failed, "fail: no good"
	}
	return c.counts, c.pick
}

// targetModel is a simple model of weighted_target. It predicts which children get calls, but not
// how many. In the given rows of docs/differences.md, it behaves like grpc-go.
type targetModel struct {
	rows map[string]bool

	stubs    model.Stubs
	version  int
	refuses  map[string]bool
	updated  bool
	onUpdate map[string]string
	children map[string]*targetChild
	queue    []func()
	last     string
	asked    int
}

// predictTargets returns the expected result of each step of a schedule and of Close. In the given
// rows, the model behaves like grpc-go. It does not predict the states published within a step.
func predictTargets(rows map[string]bool, schedule []string) []seen {
	m := &targetModel{
		rows:     rows,
		refuses:  map[string]bool{},
		onUpdate: map[string]string{},
		children: map[string]*targetChild{},
	}
	var all []seen
	for _, step := range schedule {
		returned := m.do(step)
		all = append(all, seen{nil, m.last, returned, m.stubs.Told(), m.asked})
	}
	for _, c := range m.children {
		c.Close()
	}
	return append(all, seen{nil, m.last, false, m.stubs.Told(), m.asked})
}

func (m *targetModel) do(step string) (returned bool) {
	words := strings.Fields(step)
	switch words[0] {
	case "update":
		m.updated = true
		return m.update(words[1:])
	case "refuse", "accept":
		m.refuses[words[1]] = words[0] == "refuse"
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
			m.asked++
		}
	case "update-without":
		if !m.updated && !m.rows["w-no-config"] {
			m.last = failed + " fail: no configuration"
		}
		return true
	case "report":
		if s := m.stubs.Find(words[1]); s != nil {
			m.say(m.children[nameOf(s.ID)], s, words[2])
			m.drain()
			m.publish()
		}
	}
	return false
}

func (m *targetModel) say(c *targetChild, s *model.Stub, state string) {
	m.queue = append(m.queue, func() {
		if !s.Closed && c.Reported(s, model.Report{State: state, Text: pickOf(s.ID, state)}) {
			m.handle(c, c.Current.Now.State, c.Current.Now.Text)
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
	before := c.counts
	if m.rows["w-sticky"] {
		before, c.pick = c.reported, pick
	}
	c.reported, c.refused, c.woken = state, false, false
	if before != failed || state != connecting {
		c.counts, c.pick = state, pick
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

// updateChild updates a child. It reports whether the rejection of the update is already known.
func (m *targetModel) updateChild(name, id string) (refused bool) {
	c := m.children[name]
	if c == nil {
		c = &targetChild{reported: connecting, counts: connecting, pick: "queue"}
		m.children[name] = c
	}
	s := c.Latest()
	if s == nil || s.ID != id {
		s = m.stubs.Build(id)
		c.SwitchTo(s)
	}
	s.Version = m.version
	c.refused = false
	if state, ok := m.onUpdate[name]; ok {
		m.say(c, s, state)
	}
	if !m.refuses[name] || m.rows["w-refused"] {
		return false
	}
	m.drain() // earlier reports come first
	c.Refused(errRefused.Error())
	c.refused = c.reported != ready && c.reported != idle
	return true
}

// state returns the state of the policy: the first of READY, CONNECTING and IDLE that a child
// counts as, or else TRANSIENT_FAILURE.
func (m *targetModel) state() string {
	for _, state := range []string{ready, connecting, idle} {
		for _, c := range m.children {
			if counts, _ := c.now(); counts == state {
				return state
			}
		}
	}
	return failed
}

// wake makes IDLE children connect while the policy is READY or CONNECTING.
func (m *targetModel) wake() {
	if state := m.state(); m.rows["w-wake"] || state != ready && state != connecting {
		return
	}
	for _, c := range m.children {
		if counts, _ := c.now(); counts == idle && !c.woken {
			c.woken = true
			c.Latest().ExitIdles++
		}
	}
}

func (m *targetModel) publish() {
	m.wake()
	state := m.state()
	var picks []string
	for _, c := range m.children {
		if counts, pick := c.now(); counts == state && !slices.Contains(picks, pick) {
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
