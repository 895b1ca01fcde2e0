package overload

import (
	"math"
	"slices"
	"time"

	"github.com/understudy-lb/understudy/internal/core/share"
)

// client is a channel. Its picker does what the policy is to do: it offers each call to the READY
// priorities in order.
type client struct {
	model      *model
	index      int
	roundRobin bool
	next       int
	tokens     float64
	priorities []*priority
	waiting    []*request
	inUse      mover
}

type priority struct {
	share     *share.Share
	ready     bool
	lostAt    time.Duration
	endpoints []*endpoint
	next      int
}

// endpoint counts failures in a row, and is ejected after five (A50 without its intervals).
type endpoint struct {
	share.Endpoint
	server       *server
	connected    bool
	row          int
	ejections    int
	ejectedUntil time.Duration
}

// request is a call of the user, with all its attempts.
type request struct {
	began, deadline time.Duration
	costly          bool
	attempts        int
}

func newClient(m *model, index int) *client {
	w := m.world
	c := &client{model: m, index: index, roundRobin: index < int(w.RoundRobin*float64(w.Clients)), next: index, tokens: w.Tokens}
	for _, servers := range m.servers {
		p := &priority{share: share.New(0, share.Config{}), ready: true, next: m.random.IntN(len(servers))}
		for _, s := range servers {
			p.endpoints = append(p.endpoints, &endpoint{server: s, connected: true})
		}
		c.priorities = append(c.priorities, p)
	}
	c.setLast()
	return c
}

func (c *client) scheduleArrival() {
	m, w := c.model, c.model.world
	load := w.Load
	if w.Spike.has(m.now) {
		load = w.Spike.Load
	}
	m.at(m.now+seconds(m.random.ExpFloat64()*float64(w.Clients)/load), func() {
		if m.now > w.Length {
			return
		}
		r := &request{began: m.now, deadline: forever, costly: w.Costly > 0 && m.random.Float64() < w.Costly}
		if d := w.Deadlines[c.index%len(w.Deadlines)]; d > 0 {
			r.deadline = m.now + d
		}
		c.pick(r)
		c.scheduleArrival()
	})
}

func (c *client) pick(r *request) {
	m := c.model
	if c.roundRobin {
		c.next++
		c.send(r, nil, &endpoint{server: m.flat[c.next%len(m.flat)]})
		return
	}
	for _, p := range c.priorities {
		if p.ready && p.share.Take(m.now, m.random.Float64()) {
			c.send(r, p, p.endpoint(m.now))
			return
		}
	}
	closed := false
	for _, p := range c.priorities {
		closed = closed || p.ready && !p.share.Tripped()
		if p.ready && p.share.Probe(m.now) {
			c.send(r, p, p.endpoint(m.now))
			return
		}
	}
	if !closed && slices.ContainsFunc(c.priorities, c.mayConnect) {
		c.wait(r)
		return
	}
	if slices.ContainsFunc(c.priorities, func(p *priority) bool { return p.ready }) {
		m.outcome.refused(r)
	} else {
		m.outcome.lost(r)
	}
}

// mayConnect reports whether calls may wait for a priority that has lost its connections.
func (c *client) mayConnect(p *priority) bool {
	return !p.ready && c.model.now-p.lostAt < c.model.world.FailoverTimeout
}

func (c *client) wait(r *request) {
	c.waiting = append(c.waiting, r)
	if r.deadline != forever {
		c.model.at(r.deadline, func() {
			if i := slices.Index(c.waiting, r); i >= 0 {
				c.waiting = slices.Delete(c.waiting, i, i+1)
				c.model.outcome.waited(r)
			}
		})
	}
}

// pickAgain gives the waiting calls to a new picker.
func (c *client) pickAgain() {
	waiting := c.waiting
	c.waiting = nil
	for _, r := range waiting {
		if c.model.now < r.deadline {
			c.pick(r)
		}
	}
}

// endpoint returns the next one that is connected and not ejected, or any connected one.
func (p *priority) endpoint(now time.Duration) (chosen *endpoint) {
	for range p.endpoints {
		e := p.endpoints[p.next%len(p.endpoints)]
		p.next++
		if !e.connected {
			continue
		}
		if chosen = e; e.ejectedUntil <= now {
			return e
		}
	}
	return chosen
}

func (c *client) send(r *request, p *priority, e *endpoint) {
	m := c.model
	m.outcome.attempt(r)
	r.attempts++
	budget := r.deadline - m.now
	if r.deadline == forever {
		budget = 0
	}
	var begun share.Call
	if p != nil {
		begun = p.share.Begin(m.now, budget, "/method", &e.Endpoint)
	}
	e.server.receive(&call{deadline: r.deadline, costly: r.costly, answered: func(result share.Result) {
		if p != nil {
			c.end(p, e, begun, result)
		}
		if !c.retries(r, result) {
			m.outcome.ended(r, c, e.server.priority, result == share.Good)
		}
		if len(c.waiting) > 0 {
			c.pickAgain()
		}
	}})
}

func (c *client) end(p *priority, e *endpoint, begun share.Call, result share.Result) {
	now := c.model.now
	tripped := p.share.Tripped()
	blame := p.share.End(now, begun, result)
	if tripped != p.share.Tripped() {
		c.setLast()
	}
	switch {
	case blame == share.FullNow:
	case blame == share.Late, result == share.Expired, result == share.Unavailable, result == share.Failed:
		e.row++
	default:
		e.row = 0
	}
	if e.row < 5 {
		return
	}
	e.row = 4 // its next failure after the ejection ejects it again
	e.ejections++
	e.ejectedUntil = now + time.Duration(e.ejections)*30*time.Second
	if !slices.ContainsFunc(p.endpoints, func(e *endpoint) bool { return e.ejectedUntil <= now }) {
		for _, e := range p.endpoints {
			e.ejectedUntil = 0
		}
	}
}

func (c *client) retries(r *request, result share.Result) bool {
	m, most := c.model, c.model.world.Tokens
	switch {
	case most == 0:
		return false
	case result == share.Good:
		c.tokens = min(most, c.tokens+0.1)
		return false
	case result != share.Unavailable:
		return false
	}
	c.tokens = max(0, c.tokens-1)
	if c.tokens <= most/2 || r.attempts >= 4 || m.now >= r.deadline {
		return false
	}
	backOff := seconds(m.random.Float64() * 0.05 * math.Exp2(float64(r.attempts-1)))
	m.at(m.now+backOff, func() { c.pick(r) })
	return true
}

// connectivity looks which endpoints have lost their connections.
func (c *client) connectivity() {
	for _, p := range c.priorities {
		ready := false
		for _, e := range p.endpoints {
			if e.connected && e.server.has(Down) {
				e.connected = false
				p.share.Forget(&e.Endpoint)
			}
			ready = ready || e.connected
		}
		if p.ready && !ready {
			p.lostAt = c.model.now
			c.model.at(p.lostAt+c.model.world.FailoverTimeout, func() { c.setLast(); c.pickAgain() })
		}
		p.ready = ready
	}
	c.setLast()
}

func (c *client) reconnected(s *server) {
	p := c.priorities[s.priority]
	p.endpoints[s.index].connected = !s.has(Down)
	if !p.endpoints[s.index].connected || p.ready {
		return
	}
	p.ready = true
	c.setLast()
	if slices.ContainsFunc(c.priorities[s.priority+1:], func(lower *priority) bool { return lower.ready }) {
		p.share.Returned(c.model.now, c.model.now-p.lostAt)
	}
	c.pickAgain()
}

// setLast tells the lowest READY priority that it is the last one.
func (c *client) setLast() {
	var order []share.Standing
	for _, p := range c.priorities {
		order = append(order, share.Standing{Ready: p.ready, Awaited: c.mayConnect(p), Tripped: p.share.Tripped()})
	}
	last := share.Last(order)
	for i, p := range slices.Backward(c.priorities) {
		if p.ready {
			p.share.SetLast(c.model.now, i == last)
		}
	}
}
