package overload

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/understudy-lb/understudy/internal/core/share"
)

const (
	roundTrip = time.Millisecond // of an answer without any work
	forever   = time.Duration(math.MaxInt64)
)

// model runs a world: a heap of events, each at its time.
type model struct {
	world   World
	now     time.Duration
	events  eventHeap
	serial  uint64
	random  *rand.Rand
	servers [][]*server
	flat    []*server
	clients []*client
	outcome Outcome
}

type event struct {
	at     time.Duration
	serial uint64
	do     func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].serial < h[j].serial
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1].do = nil
	*h = old[:len(old)-1]
	return last
}

func (m *model) at(t time.Duration, do func()) {
	m.serial++
	heap.Push(&m.events, event{t, m.serial, do})
}

// Run runs a world. The same seed always gives the same outcome.
func Run(w World, seed uint64) Outcome {
	w = filled(w)
	m := &model{world: w, random: rand.New(rand.NewPCG(seed, 43)), outcome: newOutcome(w)}
	for p, list := range w.Priorities {
		var servers []*server
		for i, s := range list {
			servers = append(servers, &server{Server: s, model: m, priority: p, index: i, firstUse: -1})
		}
		m.servers = append(m.servers, servers)
		m.flat = append(m.flat, servers...)
	}
	for i := range w.Clients {
		m.clients = append(m.clients, newClient(m, i))
	}
	m.scheduleFaults()
	for _, c := range m.clients {
		c.scheduleArrival()
	}
	for len(m.events) > 0 && m.events[0].at <= w.Length+5*time.Second {
		e := heap.Pop(&m.events).(event)
		m.now = e.at
		e.do()
	}
	return m.outcome.finished(m)
}

func (m *model) scheduleFaults() {
	for _, e := range m.world.Events {
		for _, s := range m.servers[e.Priority] {
			if !e.hits(s.priority, s.index) {
				continue
			}
			m.at(e.To, s.work)
			if e.Fault == Down {
				m.at(e.From, s.drop)
				for _, c := range m.clients {
					m.at(e.From, c.connectivity)
					m.at(e.To+roundTrip+time.Duration(m.random.Int64N(int64(time.Second))), func() { c.reconnected(s) })
				}
			}
		}
	}
}

// call is an attempt at a server.
type call struct {
	deadline time.Duration // forever if it has none
	costly   bool
	ended    bool
	answered func(share.Result)
}

func (c *call) end(r share.Result) {
	if !c.ended {
		c.ended = true
		c.answered(r)
	}
}

type server struct {
	Server
	model           *model
	priority, index int
	busy            int
	queue           []*call
	inside          []*call // not ended; counted for Limit, and lost when the server goes down
	firstUse        time.Duration
}

func (s *server) fault(f Fault) (Event, bool) {
	for _, e := range s.model.world.Events {
		if e.Fault == f && e.hits(s.priority, s.index) && s.model.now >= e.From && s.model.now < e.To {
			return e, true
		}
	}
	return Event{}, false
}

func (s *server) has(f Fault) bool {
	_, yes := s.fault(f)
	return yes
}

// receive is called when a call arrives.
func (s *server) receive(c *call) {
	m, w := s.model, s.model.world
	refuse := func(r share.Result) { m.at(m.now+roundTrip, func() { c.end(r) }) }
	switch {
	case s.has(Down):
		refuse(share.Unavailable)
		return
	case s.has(Internal) || w.Fail > 0 && m.random.Float64() < w.Fail:
		refuse(share.Failed)
		return
	case s.has(Unavailable), s.Limit > 0 && s.inFlight() >= s.Limit && s.Unavailable:
		refuse(share.Unavailable)
		return
	case s.Limit > 0 && s.inFlight() >= s.Limit:
		refuse(share.Refused)
		return
	}
	if c.deadline != forever {
		m.at(c.deadline, func() { c.end(share.Expired) })
	}
	s.inside = append(s.inside, c)
	if w.Expire > 0 && m.random.Float64() < w.Expire {
		return
	}
	s.queue = append(s.queue, c)
	s.work()
}

func (s *server) inFlight() int {
	s.inside = slices.DeleteFunc(s.inside, func(c *call) bool { return c.ended })
	return len(s.inside)
}

func (s *server) work() {
	for s.busy < s.Workers && len(s.queue) > 0 && !s.has(Hang) && !s.has(Pause) {
		c := s.next()
		if c.ended && !s.Blind {
			continue
		}
		s.busy++
		s.model.at(s.model.now+s.serviceTime(c), func() {
			s.busy--
			if !s.has(Hang) {
				c.end(share.Good)
			}
			s.work()
		})
	}
}

func (s *server) next() (c *call) {
	if s.LIFO {
		c, s.queue = s.queue[len(s.queue)-1], s.queue[:len(s.queue)-1]
	} else {
		c, s.queue = s.queue[0], s.queue[1:]
	}
	if len(s.inside) > 1000 {
		s.inFlight() // forgets those that have ended
	}
	return c
}

func (s *server) serviceTime(c *call) time.Duration {
	d := float64(s.Service)
	if c.costly {
		d *= s.model.world.CostlyFactor
	}
	if s.Cold > 0 {
		if s.firstUse < 0 {
			s.firstUse = s.model.now
		}
		d *= 1 + 3*math.Exp(-float64(s.model.now-s.firstUse)/float64(s.Cold))
	}
	if e, slower := s.fault(Slower); slower {
		d *= e.Factor
	}
	return time.Duration(d)
}

// drop loses all calls, like a process that is killed.
func (s *server) drop() {
	calls := s.inside
	s.inside, s.queue = nil, nil
	for _, c := range calls {
		c.end(share.Unavailable)
	}
}
