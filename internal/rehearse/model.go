package rehearse

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/understudy-lb/understudy/internal/core/share"
)

const (
	roundTrip = time.Millisecond
	forever   = time.Duration(math.MaxInt64)
)

// A model runs events in chronological order.
type model struct {
	world   World
	now     time.Duration
	events  eventHeap
	serial  uint64
	random  *rand.Rand
	servers [][]*server
	flat    []*server
	clients []*channel
	Observer
}

// Observer watches a run. Its functions are called in the order in which things happen, and any of
// them may be nil.
type Observer struct {
	Attempted func(now time.Duration, priority int)
	Ended     func(Call)
	Stopped   func() bool // called now and then; true ends the run early
}

type Call struct {
	Client       int
	Began, Ended time.Duration
	Priority     int
	Attempts     int
	End          End
}

type End int

// Everything but Answered is a lost call.
const (
	Answered     End = iota
	Failed           // a server failed it, or still had it when the deadline passed
	Refused          // by the client, because every priority is full
	Waited           // it was still waiting for a connection in the end
	NoConnection     // no priority was connected
	Dropped          // by the client, at the source's request
)

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

// hasCalls returns true if clients make any calls. If they don't, we only care about what's READY,
// so it would be a waste to prepare a pick for each report. With a thousand localities, that takes
// minutes.
func (m *model) hasCalls() bool { return m.world.Rate > 0 }

func (m *model) after(d time.Duration, do func()) { m.at(m.now+d, do) }

func newModel(w World, seed uint64, o Observer) *model {
	m := &model{world: w, random: rand.New(rand.NewPCG(seed, 48)), Observer: o}
	for p, list := range w.Priorities {
		var servers []*server
		for i, s := range list {
			servers = append(servers, &server{Server: s, model: m, priority: p, index: i, firstUse: -1})
		}
		m.servers = append(m.servers, servers)
		m.flat = append(m.flat, servers...)
	}
	for _, e := range w.Events {
		for _, s := range m.servers[e.Priority] {
			if e.concerns(s) {
				m.at(e.From, func() { s.strike(e.Fault) })
				m.at(e.To, s.work)
			}
		}
	}
	return m
}

// Run plays a world, which must have passed Check. The same seed always gives the same run.
func Run(w World, seed uint64, o Observer) {
	m := newModel(w, seed, o)
	for i := range w.Clients {
		if m.stopped() {
			return
		}
		m.clients = append(m.clients, newChannel(m, i))
	}
	for _, c := range m.clients {
		c.scheduleCall()
	}
	if w.Restart > 0 {
		m.at(w.Restart, func() {
			for i, c := range m.clients {
				c.close()
				m.clients[i] = newChannel(m, i)
			}
		})
	}
	m.until(w.Length + slices.Max(w.Deadlines) + 5*time.Second)
}

func (m *model) until(end time.Duration) {
	for len(m.events) > 0 && m.events[0].at <= end {
		e := heap.Pop(&m.events).(event)
		m.now = e.at
		if e.do(); e.serial%1024 == 0 && m.stopped() {
			return
		}
	}
}

func (m *model) stopped() bool { return m.Stopped != nil && m.Stopped() }

type attempt struct {
	client   *channel
	deadline time.Duration
	costly   bool
	ended    bool
	end      func(share.Result)
}

func (a *attempt) finish(r share.Result) {
	if !a.ended {
		a.ended = true
		a.end(r)
	}
}

type server struct {
	Server
	model           *model
	priority, index int
	connections     []*endpoint
	busy            int
	queue           []*attempt
	inside          []*attempt // may include some that have ended; all others count towards Limit, and are lost when the server is killed
	kept            int        // inside is cleaned up when it's longer than this
	firstUse        time.Duration
}

func (s *server) fault(f Fault) (factor float64, has bool) {
	for i := range s.model.world.Events {
		if e := &s.model.world.Events[i]; e.Fault == f && e.hits(s, s.model.now) {
			return e.Factor, true
		}
	}
	return 0, false
}

func (s *server) has(f Fault) bool {
	_, has := s.fault(f)
	return has
}

func (s *server) accepts() bool { return !s.has(Killed) && !s.has(Drained) }

func (s *server) unreachableFor(c *channel) bool {
	for i := range s.model.world.Events {
		e := &s.model.world.Events[i]
		if e.Fault == Unreachable && e.hits(s, s.model.now) && (e.Seen == 0 || float64(c.index) < e.Seen*float64(s.model.world.Clients)) {
			return true
		}
	}
	return false
}

func (s *server) strike(f Fault) {
	switch f {
	case Killed, Drained:
		s.disconnect(f == Killed, func(*channel) bool { return true })
	case Unreachable:
		s.model.after(keepalive, func() { s.disconnect(true, s.unreachableFor) })
	}
}

func (s *server) disconnect(loseCalls bool, some func(*channel) bool) {
	connections, calls := s.connections, s.inside
	s.connections, s.inside = nil, nil
	for _, a := range calls {
		if loseCalls && some(a.client) {
			a.finish(share.Lost)
		} else {
			s.inside = append(s.inside, a)
		}
	}
	s.queue = slices.DeleteFunc(s.queue, func(a *attempt) bool { return a.ended && loseCalls })
	for _, e := range connections {
		if some(e.child.channel) {
			e.disconnected()
		} else {
			s.connections = append(s.connections, e)
		}
	}
}

func (s *server) receive(a *attempt) {
	m, w := s.model, &s.model.world
	refuse := func(r share.Result) { m.after(roundTrip, func() { a.finish(r) }) }
	failing, broken := s.fault(Errors)
	switch {
	case s.has(Killed):
		refuse(share.Lost)
		return
	case s.has(Unavailable), s.Limit > 0 && s.inFlight() >= s.Limit && s.Unavailable:
		refuse(share.Unavailable)
		return
	case broken && (failing == 0 || m.random.Float64() < failing), w.Fail > 0 && m.random.Float64() < w.Fail:
		refuse(share.Failed)
		return
	case s.Limit > 0 && s.inFlight() >= s.Limit:
		refuse(share.Refused)
		return
	}
	if a.deadline != forever {
		m.at(a.deadline, func() { a.finish(share.Expired) })
	}
	s.inside = append(s.inside, a)
	if s.unreachableFor(a.client) || w.Expire > 0 && m.random.Float64() < w.Expire {
		return
	}
	s.queue = append(s.queue, a)
	s.work()
}

func (s *server) inFlight() int {
	s.inside = slices.DeleteFunc(s.inside, func(a *attempt) bool { return a.ended })
	return len(s.inside)
}

func (s *server) workers() int {
	if factor, fewer := s.fault(Fewer); fewer {
		return max(1, int(float64(s.Workers)*factor+0.5))
	}
	return s.Workers
}

func (s *server) work() {
	for len(s.queue) > 0 && s.busy < s.workers() && !s.has(Hangs) && !s.has(Pause) {
		a := s.next()
		if a.ended && !s.Blind {
			continue
		}
		s.busy++
		s.model.after(s.serviceTime(a), func() {
			s.busy--
			if !s.has(Hangs) && !s.unreachableFor(a.client) {
				a.finish(share.Good)
			}
			s.work()
		})
	}
}

func (s *server) next() (a *attempt) {
	if s.LIFO {
		a, s.queue = s.queue[len(s.queue)-1], s.queue[:len(s.queue)-1]
	} else {
		a, s.queue = s.queue[0], s.queue[1:]
	}
	if len(s.inside) > max(1000, s.kept) {
		s.kept = 2 * s.inFlight() // inFlight drops the ones that have ended
	}
	return a
}

func (s *server) serviceTime(a *attempt) time.Duration {
	d := float64(s.Service)
	if a.costly {
		d *= s.model.world.CostlyFactor
	}
	if s.Cold > 0 {
		if s.firstUse < 0 {
			s.firstUse = s.model.now
		}
		d *= 1 + 3*math.Exp(-float64(s.model.now-s.firstUse)/float64(s.Cold))
	}
	if factor, slow := s.fault(Slow); slow {
		d *= factor
	}
	return time.Duration(d)
}
