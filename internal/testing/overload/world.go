// Package overload has worlds in which clients send calls to priorities of servers that can become
// full, slow or silent, and a model of discrete events that runs them with the shares of
// internal/core/share. A world of minutes takes milliseconds. For tests only.
//
// The model knows queues and connectivity, and nothing of gRPC: it judges the rules, and tests of
// the real library judge how they are carried out. Each world has bounds. A bound that is missed
// is reported, and never changed to be met.
package overload

import (
	"fmt"
	"math"
	"time"

	"github.com/understudy-lb/understudy/internal/rehearse"
)

type (
	Server = rehearse.Server
	Event  = rehearse.Event
	Fault  = rehearse.Fault
)

const (
	Hang        = rehearse.Hangs
	Internal    = rehearse.Errors
	Unavailable = rehearse.Unavailable
	Slower      = rehearse.Slow
	Pause       = rehearse.Pause
	Down        = rehearse.Killed

	all     = rehearse.All
	forever = time.Duration(math.MaxInt64)
)

// Span is a time from the begin of a world to another one.
type Span struct{ From, To time.Duration }

// Has reports whether a moment is in the span.
func (s Span) Has(t time.Duration) bool { return rehearse.Span(s).Has(t) }

// Spike is another load for a while.
type Spike struct {
	Load float64
	Span
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
	Restart    time.Duration // all clients are replaced by new ones; 0 for never
	Trouble    Span          // the time of the fault or the spike

	Costly, CostlyFactor float64 // a fraction of the calls takes so many times longer
	Expire, Fail         float64 // fractions of the calls that expire or fail (INTERNAL) by nature
	Tokens               float64 // of the retry throttle; 0 for no retries
	RoundRobin           float64 // fraction of the clients that use gRPC's round_robin over all servers
	FailoverTimeout      time.Duration

	Want Bounds
}

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

func (w World) played() rehearse.World {
	policy := rehearse.Recommended()
	policy.FailoverTimeout = w.FailoverTimeout
	return rehearse.World{
		Priorities: w.Priorities, Clients: w.Clients, Rate: w.Load, Deadlines: w.Deadlines, Length: w.Length, Spikes: []rehearse.Spike{{Rate: w.Spike.Load, Span: rehearse.Span(w.Spike.Span)}}, Events: w.Events, Restart: w.Restart, Entries: w.entries(),
		Costly: w.Costly, CostlyFactor: w.CostlyFactor, Expire: w.Expire, Fail: w.Fail, Tokens: w.Tokens, RoundRobin: w.RoundRobin,
		Policy: policy,
	}
}

// entries says that each priority is an entry of the target, with a source of its own.
func (w World) entries() (list []string) {
	for p := range w.Priorities {
		list = append(list, fmt.Sprint(p))
	}
	return list
}

func (w World) capacity() (total float64) {
	played := w.played()
	for p := range w.Priorities {
		total += played.Capacity(p)
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
