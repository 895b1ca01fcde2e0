// Package overload has worlds, in which clients call priorities of servers that can get full, slow
// or silent. It runs them in a discrete-event model with the shares of internal/core/share. Minutes
// in a world take milliseconds.
//
// The model knows about queues and connectivity but nothing about gRPC. It shows whether the rules
// are any good, and tests with the real library show whether we follow them. Every world has
// bounds. If one is missed, we report that; we never adjust a bound to make it pass.
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

// Span is part of a run. Times are measured from the start.
type Span struct{ From, To time.Duration }

func (s Span) Has(t time.Duration) bool { return rehearse.Span(s).Has(t) }

type Spike struct {
	Load float64
	Span
}

type World struct {
	Name       string
	Priorities [][]Server
	Clients    int
	Load       float64         // calls per second from all clients together
	Deadlines  []time.Duration // clients take these in turn; 0 is none
	Length     time.Duration
	From       time.Duration // calls that began earlier don't count
	Spike      Spike
	Events     []Event
	Restart    time.Duration // when all clients are replaced by new ones; 0 is never
	Trouble    Span

	Costly, CostlyFactor float64 // this fraction of the calls takes that many times longer
	Expire, Fail         float64 // fractions of calls that would expire or fail (INTERNAL) anyway
	Tokens               float64 // of the retry throttle; 0 means no retries
	RoundRobin           float64 // fraction of the clients that use gRPC's round_robin over all servers
	FailoverTimeout      time.Duration

	Want Bounds
}

// Bounds are the limits that a world must stay within. 0 means no limit, but see None.
type Bounds struct {
	Goodput    float64       // at least this fraction of the load or the capacity, whichever is smaller, is answered
	Recovery   time.Duration // after the trouble, calls are lost for at most this long
	Lost       int
	ClientLost float64       // same as Lost, for each client
	Next       time.Duration // another priority must answer within this time of the start of the trouble
	Elsewhere  float64       // at most this fraction is answered by any priority but the first
	Diverted   int           // same as Elsewhere, as a number of calls
	Attempts   float64       // at most this many for each call
	Moves      float64       // at most this many moves of a client between priorities per minute
	None       bool
	Kept       bool // no call is lost, except those that a server refuses or that expire there
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

// filled fills in defaults: 30 clients, a deadline of 1 s, and two priorities with 200 calls a
// second each, for 90 s.
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
