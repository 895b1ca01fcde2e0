package differential

import (
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	connecting, ready, idle, failed = "CONNECTING", "READY", "IDLE", "TRANSIENT_FAILURE"

	failover  = 10 * time.Second
	retention = 15 * time.Minute
)

// tick is what each step of a schedule takes beside what it says, so that no two
// timers that were started in different steps end at the same moment.
const tick = time.Millisecond

// modelChild is a child of the priority policy.
type modelChild struct {
	modelPolicy
	name            string
	state, pick     string // reported
	seenReadyOrIdle bool
	failover        time.Duration // when the timer fires, 0 for none
	expired         bool
	deactivation    time.Duration // when the timer fires, 0 for none
	failoverBefore  time.Duration // failover, when it was deactivated
	removed         bool          // deactivated because an update did not have it
	ignored         bool          // its requests for re-resolution, as it was last updated
	forgotten       bool          // by an update, while it was deactivated, that did not have it so
}

func (c *modelChild) deactivated() bool { return c.deactivation != 0 }

// effective is the pseudo-code's connectivity_state().
func (c *modelChild) effective() string {
	if c.expired {
		return failed
	}
	return c.state
}

// model is A56 written down as plainly as can be, with the decisions of this project
// where it has none. Each row of the table that is in rows makes it do what grpc-go
// does instead.
type model struct {
	rows map[string]bool
	now  time.Duration

	stubs    modelStubs
	version  int
	rejects  map[string]bool
	onUpdate map[string]string

	priorities []string
	ids        map[string]string // of the children configured, with their types
	ignored    map[string]bool   // whose requests for re-resolution are ignored
	children   map[string]*modelChild
	inUse      string
	updating   bool
	returned   bool
	queue      []func() // events yet to be handled
	rejections []func() // to be handled right after the choice under way
	tie        bool     // two failover timers have ended at the same moment

	published []string
	last      string
	asked     int // for re-resolution
}

func newModel(rows map[string]bool) *model {
	return &model{
		rows:     rows,
		rejects:  map[string]bool{},
		onUpdate: map[string]string{},
		ids:      map[string]string{},
		children: map[string]*modelChild{},
	}
}

// seen is what is seen of a policy after a step.
type seen struct {
	published []string // in the step
	last      string   // published in all, "" for nothing yet
	returned  bool     // an error, by an update
	told      string   // see side.told
	asked     int      // for re-resolution, in all
}

// predict says what is seen of a schedule after each step, and after Close, where the
// given rows apply; and whether it depends on which of two timers ends first.
func predict(rows map[string]bool, schedule []string) (all []seen, tie bool) {
	m := newModel(rows)
	for _, step := range schedule {
		m.published, m.returned = nil, false
		m.do(step)
		returned := m.returned && strings.HasPrefix(step, "update")
		m.advance(tick)
		all = append(all, seen{m.published, m.last, returned, m.stubs.told(), m.asked})
	}
	m.published = nil
	for _, name := range m.names() {
		m.destroy(m.children[name])
	}
	return append(all, seen{m.published, m.last, false, m.stubs.told(), m.asked}), m.tie
}

func (m *model) do(step string) {
	words := strings.Fields(step)
	switch words[0] {
	case "update":
		m.update(words[1:])
	case "wait":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			panic(err)
		}
		m.advance(d)
	case "reject", "accept":
		m.rejects[words[1]] = words[0] == "reject"
	case "on-update":
		m.onUpdate[words[1]] = words[2]
	case "exit-idle":
		m.exitIdle()
	case "resolver-error":
		m.resolverError()
	case "resolve-now":
		if s := m.stubs.find(words[1]); s != nil && m.passesOn(m.children[nameOf(s.id)]) {
			m.asked++
		}
	case "update-without":
		m.returned = true
		if m.version == 0 && !m.rows["p-no-config"] {
			m.publish(failed, "fail: no configuration")
		}
	case "report":
		if s := m.stubs.find(words[1]); s != nil {
			m.say(m.children[nameOf(s.id)], s, words[2])
		}
	}
	m.drain()
}

func (m *model) names() []string { return slices.Sorted(maps.Keys(m.children)) }

func (m *model) later(f func()) { m.queue = append(m.queue, f) }

func (m *model) drain() {
	for len(m.queue) > 0 {
		f := m.queue[0]
		m.queue = m.queue[1:]
		f()
	}
}

// say makes a stub report, which is handled later.
func (m *model) say(c *modelChild, s *modelStub, state string) {
	s.said, s.saidPick = state, pickOf(s.id, state)
	pick := s.saidPick
	m.later(func() { m.reported(c, s, state, pick) })
}

// advance lets time pass, with the timers that end in it.
func (m *model) advance(d time.Duration) {
	end := m.now + d
	for {
		var next *modelChild
		at := end + 1
		for _, name := range m.names() {
			c := m.children[name]
			first := c.firstTimer()
			m.tie = m.tie || next != nil && first == at && first == c.failover
			if first != 0 && first < at {
				next, at = c, first
			}
		}
		if next == nil {
			m.now = end
			return
		}
		m.now = at
		m.fire(next)
		m.drain()
	}
}

func (c *modelChild) firstTimer() time.Duration {
	if c.failover == 0 || c.deactivation == 0 {
		return max(c.failover, c.deactivation)
	}
	return min(c.failover, c.deactivation)
}

func (m *model) fire(c *modelChild) {
	switch {
	case c.deactivation == m.now:
		m.destroy(c)
	case m.rows["p-timeout"]:
		c.failover = 0
		m.choose("")
	default:
		c.failover, c.expired, c.seenReadyOrIdle = 0, true, false
		m.choose(c.name)
	}
}

func (m *model) publish(state, pick string) {
	m.last = state + " " + pick
	m.published = append(m.published, m.last)
}
