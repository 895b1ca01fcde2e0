package rehearse

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/understudy-lb/understudy/internal/core/join"
	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/core/share"
	"github.com/understudy-lb/understudy/internal/core/weightedtarget"
)

// A channel acts on the decisions of its cores, like policy/priority does.
type channel struct {
	model      *model
	index      int
	roundRobin bool // uses gRPC's round_robin over all servers
	next       int
	join       *join.Core
	core       *core.Core
	names      []string
	children   map[string]*child // keyed by name, which is the priority's number
	intakes    []*intake
	timers     map[timer]uint64

	chosen string
	state  core.State
	wanted string
	offers bool          // the child in use is READY, so calls are offered to all READY children
	start  time.Duration // when the first update came; negative until then
	closed bool

	tokens  float64
	waiting []*call
}

// An intake has a priority's share and the state of the priority's connections, which the share
// depends on.
type intake struct {
	*share.Share
	share.Link
}

func (c *channel) newIntake() intake {
	return intake{share.New(c.model.now, c.model.world.Policy.Share), share.NewLink()}
}

type timer struct {
	kind  core.Kind
	child string
}

func newChannel(m *model, index int) *channel {
	w := &m.world
	c := &channel{model: m, index: index, next: index, roundRobin: index < int(w.RoundRobin*float64(w.Clients)), core: core.New(), children: make(map[string]*child), timers: make(map[timer]uint64), tokens: w.Tokens, start: -1}
	for p := range m.servers {
		c.names = append(c.names, strconv.Itoa(p))
		i := c.newIntake()
		c.intakes = append(c.intakes, &i)
	}
	if c.roundRobin {
		return c
	}
	c.startSources()
	return c
}

func (c *channel) close() {
	c.closed = true
	if c.roundRobin {
		return
	}
	c.join.Closed(at(c.model.now))
	for _, child := range c.children {
		child.close()
	}
}

func (c *channel) handle(actions []core.Action) {
	if c.closed {
		return
	}
	c.limitBackoffs()
	c.apply(actions)
	c.settle()
}

func (c *channel) apply(actions []core.Action) {
	for _, a := range actions {
		child := c.children[a.Child]
		switch a.Kind {
		case core.Create:
			c.children[a.Child] = c.newChild(a.Child)
		case core.Update:
			child.connect()
			c.handle(c.core.Updated(a.Child))
		case core.CallStandbyDue:
			c.model.after(0, func() { c.handle(c.core.StandbyDue()) })
		case core.Destroy:
			child.close()
			delete(c.children, a.Child)
			*c.intakes[child.number] = c.newIntake()
		case core.ExitIdle:
			child.exitIdle()
		case core.StartFailover:
			c.startTimer(a, c.core.FailoverTimerFired)
		case core.StartDeactivation:
			c.startTimer(a, c.core.DeactivationTimerFired)
		case core.StopFailover:
			delete(c.timers, timer{core.StartFailover, a.Child})
		case core.StopDeactivation:
			delete(c.timers, timer{core.StartDeactivation, a.Child})
		case core.Publish, core.PublishRefused, core.PublishTimeout, core.PublishEmpty:
			c.chosen = a.Child
			c.state, _ = c.core.State(a.Child)
			c.model.after(0, c.pickAgain)
		}
	}
}

func (c *channel) startTimer(a core.Action, fired func(string) []core.Action) {
	key := timer{a.Kind, a.Child}
	number := c.model.serial
	c.timers[key] = number
	c.model.after(a.After, func() {
		if c.timers[key] == number {
			delete(c.timers, key)
			c.handle(fired(a.Child))
		}
	})
}

// settle updates the shares with the state of the other priorities, and tells the core whether we
// need one more priority.
func (c *channel) settle() {
	if c.closed || !c.model.world.Policy.Overflow {
		return
	}
	var returned []int
	for p, name := range c.names {
		if state, exists := c.core.State(name); exists && c.intakes[p].Note(c.model.now, state == core.Ready) {
			returned = append(returned, p)
		}
	}
	c.setLast()
	ready := c.ready()
	for _, p := range returned {
		i := c.intakes[p]
		if i.MayBeCold(p == ready[len(ready)-1], !c.offers || c.model.now-c.start <= c.model.world.Policy.FailoverTimeout) {
			i.Returned(c.model.now, c.model.now-i.LostAt)
		}
	}
	c.want()
	c.offers = c.state == core.Ready
	c.model.after(0, c.pickAgain)
}

func (c *channel) ready() (list []int) {
	for p, i := range c.intakes {
		if i.Ready {
			list = append(list, p)
		}
	}
	return list
}

func (c *channel) order() (order []share.Place) {
	for p, i := range c.intakes {
		place := share.Place{Awaited: c.core.Awaited(c.names[p])}
		if i.Ready {
			place = share.Place{Ready: true, Standing: i.Standing()}
		}
		order = append(order, place)
	}
	return order
}

func (c *channel) setLast() {
	last := share.Last(c.order())
	for p, i := range c.intakes {
		if i.Ready {
			i.SetLast(c.model.now, p == last)
		}
	}
}

// We want another priority if the lowest READY one can't carry its calls.
func (c *channel) want() {
	below := ""
	if p := share.Short(c.order()); p >= 0 {
		below = c.names[p]
	}
	if c.wanted != below {
		c.wanted = below
		c.apply(c.core.WantStandbyBelow(below))
	}
}

// limitBackoffs cuts long backoffs short while no child is READY.
func (c *channel) limitBackoffs() {
	const shortest, most, each = 2 * time.Second, 10 * time.Second, time.Second / 2
	longest := min(most, max(shortest, time.Duration(len(c.model.flat))*each))
	limited := c.model.world.Policy.MaxConnectBackoff > longest && !c.anyReady()
	for _, name := range c.names {
		child := c.children[name]
		if child == nil || child.resets == limited {
			continue
		}
		child.resets = limited
		if child.resetRun++; !limited {
			continue
		}
		run := child.resetRun
		c.model.after(longest/4+time.Duration(c.model.random.Int64N(int64(longest/4))), func() {
			if child.resetRun == run && !child.closed {
				child.resets = false
				child.resetBackoff(longest / 2)
				c.limitBackoffs()
			}
		})
	}
}

func (c *channel) anyReady() bool {
	for _, child := range c.children {
		if child.reported == weightedtarget.Ready {
			return true
		}
	}
	return false
}

// A call as the user sees it, which includes all attempts.
type call struct {
	began, deadline time.Duration
	costly          bool
	priority        int
	attempts        int
}

func (c *channel) scheduleCall() {
	m, w := c.model, &c.model.world
	rate := w.Rate
	for _, spike := range w.Spikes {
		if spike.Has(m.now) {
			rate = spike.Rate
		}
	}
	m.after(seconds(m.random.ExpFloat64()*float64(w.Clients)/rate), func() {
		if m.now > w.Length {
			return
		}
		r := &call{began: m.now, deadline: forever, costly: w.Costly > 0 && m.random.Float64() < w.Costly}
		if d := w.Deadlines[c.index%len(w.Deadlines)]; d > 0 {
			r.deadline = m.now + d
		}
		m.clients[c.index].pick(r)
		c.scheduleCall()
	})
}

// Values that would overflow are capped. No run takes that long anyway.
func seconds(s float64) time.Duration {
	return time.Duration(min(s*float64(time.Second), 1e18))
}

func (c *channel) ended(r *call, end End) {
	if c.model.Ended != nil {
		c.model.Ended(Call{Client: c.index, Began: r.began, Ended: c.model.now, Priority: r.priority, Attempts: r.attempts, End: end})
	}
}

func (c *channel) pick(r *call) {
	if c.roundRobin {
		c.next++
		c.call(r, c.model.flat[c.next%len(c.model.flat)], func(share.Result) {})
		return
	}
	if !c.offers || !c.model.world.Policy.Overflow {
		c.pickChosen(r)
		return
	}
	now, ready, unsent := c.model.now, c.ready(), false
	for _, p := range ready {
		taken := false
		c.with(p, func(s *share.Share) { taken = s.Take(now, c.model.random.Float64()) })
		if taken && c.send(r, p) {
			return
		}
		unsent = unsent || taken
	}
	if unsent {
		c.wait(r)
		return
	}
	sent, waits := share.Leftover(len(ready), slices.ContainsFunc(c.names, c.core.Awaited), func(i int) (sent, tripped bool) {
		taken := false
		c.with(ready[i], func(s *share.Share) { taken, tripped = s.Probe(now), s.Tripped() })
		return taken && c.send(r, ready[i]), tripped
	})
	switch {
	case waits:
		c.wait(r)
	case !sent:
		c.ended(r, Refused)
	}
}

// We settle if f has changed what the share means for other priorities.
func (c *channel) with(p int, f func(*share.Share)) {
	s := c.intakes[p].Share
	before := s.Standing()
	f(s)
	if s.Standing() != before {
		c.model.after(0, c.settle)
	}
}

func (c *channel) pickChosen(r *call) {
	child := c.children[c.chosen]
	switch {
	case c.state == core.Ready && child != nil && c.send(r, child.number):
	case c.state == core.TransientFailure:
		c.ended(r, NoConnection)
	default:
		if child != nil && c.state == core.Idle {
			child.exitIdle()
		}
		c.wait(r)
	}
}

func (c *channel) wait(r *call) {
	c.waiting = append(c.waiting, r)
	if r.deadline != forever {
		c.model.at(r.deadline, func() {
			if i := slices.Index(c.waiting, r); i >= 0 {
				c.waiting = slices.Delete(c.waiting, i, i+1)
				c.ended(r, Waited)
			}
		})
	}
}

func (c *channel) pickAgain() {
	waiting := c.waiting
	c.waiting = nil
	for _, r := range waiting {
		if c.model.now < r.deadline {
			c.pick(r)
		} else {
			c.ended(r, Waited)
		}
	}
}

func (c *channel) send(r *call, p int) bool {
	m := c.model
	if p < len(m.world.Drop) && m.world.Drop[p] > 0 && m.random.Float64() < m.world.Drop[p] {
		r.priority = p
		c.ended(r, Dropped)
		return true
	}
	e := c.children[c.names[p]].pick()
	if e == nil {
		return false
	}
	budget := r.deadline - m.now
	if r.deadline == forever {
		budget = 0
	}
	var begun share.Call
	ticket := e.begin()
	c.with(p, func(s *share.Share) { begun = s.Begin(m.now, budget, "/method", &e.Endpoint) })
	c.call(r, e.server, func(result share.Result) { c.end(p, e, begun, ticket, result) })
	return true
}

func (c *channel) call(r *call, s *server, ended func(share.Result)) {
	m := c.model
	r.priority = s.priority
	if r.attempts++; m.Attempted != nil {
		m.Attempted(m.now, s.priority)
	}
	s.receive(&attempt{client: c, deadline: r.deadline, costly: r.costly, end: func(result share.Result) {
		ended(result)
		if c.retries(r, result) {
			return
		}
		if result == share.Good {
			c.ended(r, Answered)
		} else {
			c.ended(r, Failed)
		}
	}})
}

func (c *channel) end(p int, e *endpoint, begun share.Call, ticket ticket, result share.Result) {
	var blame share.Blame
	c.with(p, func(s *share.Share) { blame = s.End(c.model.now, begun, result) })
	e.ended(ticket, result, blame)
}

func (c *channel) retries(r *call, result share.Result) bool {
	m, most := c.model, c.model.world.Tokens
	switch {
	case most == 0:
		return false
	case result == share.Good:
		c.tokens = min(most, c.tokens+0.1)
		return false
	case result != share.Unavailable && result != share.Lost:
		return false
	}
	c.tokens = max(0, c.tokens-1)
	if c.tokens <= most/2 || r.attempts >= 4 || m.now >= r.deadline {
		return false
	}
	backOff := seconds(m.random.Float64() * 0.05 * math.Exp2(float64(r.attempts-1)))
	m.after(backOff, func() {
		if m.now < r.deadline {
			c.pick(r)
		} else {
			c.ended(r, Failed)
		}
	})
	return true
}
