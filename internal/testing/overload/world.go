// Package overload has worlds in which clients send calls to priorities of servers that can become
// full, slow or silent, and a model of discrete events that runs them with the shares of
// internal/core/share. A world of minutes takes milliseconds. For tests only.
//
// The model knows queues and connectivity, and nothing of gRPC: it judges the rules, and tests of
// the real library judge how they are carried out. Each world has bounds. A bound that is missed
// is reported, and never changed to be met.
package overload

import (
	"time"
)

// Server is an endpoint with workers, each of which serves a call in Service.
type Server struct {
	Workers     int
	Service     time.Duration
	Blind       bool          // it also works on calls whose deadline has passed
	LIFO        bool          // it works on the newest call first
	Limit       int           // it refuses calls while so many are in it
	Unavailable bool          // it refuses with UNAVAILABLE, not RESOURCE_EXHAUSTED
	Cold        time.Duration // at first use it is four times slower, which fades with this time
}

func (s Server) capacity() float64 { return float64(s.Workers) / s.Service.Seconds() }

type Fault int

const (
	Hang        Fault = iota // no answers
	Internal                 // INTERNAL at once
	Unavailable              // UNAVAILABLE at once
	Slower                   // serving takes Factor as long
	Pause                    // no call is begun
	Down                     // no connections
)

// Event is a fault of one server, or of all servers of a priority if Server is all.
type Event struct {
	From, To         time.Duration
	Priority, Server int
	Fault            Fault
	Factor           float64
}

const all = -1

func (e Event) hits(priority, server int) bool {
	return e.Priority == priority && (e.Server == all || e.Server == server)
}

// World is a setting and what is expected of it.
type World struct {
	Name       string
	Priorities [][]Server
	Clients    int
	Load       float64         // calls in a second, of all clients
	Deadlines  []time.Duration // of the clients in turn; 0 for none
	Length     time.Duration
	From       time.Duration // calls that begin earlier are not counted
	Spike      Spike
	Events     []Event
	Trouble    Span // the time of the fault or the spike

	Costly, CostlyFactor float64 // a fraction of the calls takes so many times longer
	Expire, Fail         float64 // fractions of the calls that expire or fail (INTERNAL) by nature
	Tokens               float64 // of the retry throttle; 0 for no retries
	RoundRobin           float64 // fraction of the clients that use gRPC's round_robin over all servers
	FailoverTimeout      time.Duration

	Want Bounds
}

// Spike is another load for a while.
type Spike struct {
	Load float64
	Span
}

type Span struct{ From, To time.Duration }

func (s Span) has(t time.Duration) bool { return t >= s.From && t < s.To }

// Bounds are what a world must keep. A bound of 0 is none, but see None.
type Bounds struct {
	Goodput    float64       // at least this fraction of the smaller of load and capacity is answered
	Recovery   time.Duration // after the trouble, calls are lost for at most so long
	Lost       int           // at most so many calls are lost because of the trouble
	ClientLost float64       // the same, for each client
	Next       time.Duration // so long after the trouble began, another priority answers
	Elsewhere  float64       // at most this fraction is answered by another priority than the first
	Diverted   int           // at most so many calls are
	Attempts   float64       // at most so many for each call
	Moves      float64       // at most so many moves of a client between priorities in a minute
	None       bool          // nothing is refused by the client
	Kept       bool          // no call is lost that is not refused by a server or expires in one
}

func (w World) capacity() float64 {
	total := 0.0
	for _, p := range w.Priorities {
		for _, s := range p {
			total += s.capacity() / (1 + w.Costly*max(0, w.CostlyFactor-1))
		}
	}
	return total
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func same(n int, s Server) (list []Server) {
	for range n {
		list = append(list, s)
	}
	return list
}

// fifo is a server that does 20 calls a second with each worker.
func fifo(workers int) Server { return Server{Workers: workers, Service: 50 * time.Millisecond} }

func each(servers ...Server) (priorities [][]Server) {
	for _, s := range servers {
		priorities = append(priorities, []Server{s})
	}
	return priorities
}

// filled sets what a world does not say: 30 clients, a deadline of 1 s, and two priorities of 200
// calls a second each, for 90 s.
func filled(w World) World {
	if w.Clients == 0 {
		w.Clients = 30
	}
	if w.Deadlines == nil {
		w.Deadlines = []time.Duration{time.Second}
	}
	if w.Length == 0 {
		w.Length = 90 * time.Second
	}
	if w.Priorities == nil {
		w.Priorities = each(fifo(10), fifo(10))
	}
	if w.FailoverTimeout == 0 {
		w.FailoverTimeout = 2 * time.Second
	}
	return w
}
