// Package rehearse plays a fleet's outage in virtual time. Its clients make decisions with the same
// cores as real channels, and its servers can get full, slow or silent. Playing a few minutes with
// hundreds of clients takes a fraction of a second.
//
//	channel   core/join, core/priority, core/share, core/outlierdetection, core/weightedtarget,
//	          core/weightedroundrobin, core/pickfirst: composed as the policies compose them
//	server    workers, a queue, a deadline that it may not see, a cold start
//	fault     a span of time in which servers are killed, hang, refuse, slow down ...
//
// There's one event loop, and all randomness comes from one seed, so the same seed gives the same
// run. The network has a round trip of a millisecond.
package rehearse

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/understudy-lb/understudy/internal/core/outlierdetection"
	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/core/share"
)

type Server struct {
	Workers        int
	Service        time.Duration
	Weight         uint32 // 0 means 1
	Locality       string
	LocalityWeight uint32 // 0 means 1
	Blind          bool   // it even works on calls whose deadline has passed
	LIFO           bool
	Limit          int           // it refuses calls when it has this many; 0 means no limit
	Unavailable    bool          // it refuses with UNAVAILABLE rather than RESOURCE_EXHAUSTED
	Cold           time.Duration // it starts out four times slower and takes this long to warm up
}

func (s Server) Capacity() float64 { return float64(s.Workers) / s.Service.Seconds() }

type Fault int

const (
	Killed  Fault = iota // no connections; calls in flight fail
	Drained              // no connections; calls in flight are answered
	Hangs
	Unreachable // no packets, so connections end by keepalive and attempts by timeout
	Errors      // fails a fraction of the calls (Factor; 0 means all) with INTERNAL right away
	Unavailable
	Slow // service takes Factor times as long
	Fewer
	Pause
	SourceSilent // clients that start get no answer from the priority's source
	SourceFails
)

// Event is a fault of one server, or of all servers of a priority if Server is All.
type Event struct {
	From, To         time.Duration
	Priority, Server int
	Fault            Fault
	Factor           float64
	Seen             float64 // Unreachable only affects this fraction of the clients; 0 means all
}

// How long it takes to notice that a server is unreachable: the recommended keepalive for a
// connection, and gRPC's minimum for an attempt.
const (
	keepalive      = 15 * time.Second
	connectTimeout = 20 * time.Second
)

// All is the Event.Server that means every server of the priority.
const All = -1

func (e *Event) hits(s *server, now time.Duration) bool {
	return now >= e.From && now < e.To && e.concerns(s)
}

func (e *Event) concerns(s *server) bool {
	return e.Priority == s.priority && (e.Server == All || e.Server == s.index)
}

// Span is part of a run. Times are measured from the start.
type Span struct{ From, To time.Duration }

func (s Span) Has(t time.Duration) bool { return t >= s.From && t < s.To }

type Spike struct {
	Rate float64
	Span
}

type World struct {
	Priorities [][]Server
	Entries    []string  // for each priority, which entry of the target it comes from; nil if there's just one
	Drop       []float64 // for each priority, the fraction of calls that clients drop; nil for none
	Clients    int
	Rate       float64         // calls per second by all clients together
	Deadlines  []time.Duration // clients take turns with these; 0 means no deadline
	Length     time.Duration
	Spikes     []Spike
	Events     []Event
	Restart    time.Duration // when all clients are replaced by new ones; 0 means never

	Costly, CostlyFactor float64 // fraction of calls that are costly, and how many times longer those take
	Expire, Fail         float64 // fractions of calls that expire or fail (INTERNAL) even without a fault
	Tokens               float64 // for the retry throttle; only UNAVAILABLE is retried, and 0 means no retries
	RoundRobin           float64 // fraction of the clients that use gRPC's round_robin over all servers
	Subset               int     // how many endpoints of a priority each client uses, chosen at random; 0 means all
	Policy               Policy
}

type Policy struct {
	core.Config       // names of children aren't used
	Share             share.Config
	MaxConnectBackoff time.Duration
	Ejection          outlierdetection.Config // zero value if nothing is ejected
}

// Recommended returns the recommended policy. A test makes sure that it matches
// understudy.Recommended.
func Recommended() Policy {
	return Policy{
		Config:            core.Config{FailoverTimeout: 2 * time.Second, ChildRetention: 15 * time.Minute, WarmStandby: 1, Overflow: true},
		MaxConnectBackoff: 10 * time.Second,
		Ejection: outlierdetection.Config{
			Interval: 10 * time.Second, BaseEjectionTime: 30 * time.Second, MaxEjectionTime: 300 * time.Second, MaxEjectionPercent: 100,
			FailurePercentageEjection:   &outlierdetection.FailurePercentageEjection{Threshold: 85, EnforcementPercentage: 100, MinimumHosts: 1, RequestVolume: 10},
			ConsecutiveFailuresEjection: &outlierdetection.ConsecutiveFailuresEjection{Failures: 5, EnforcementPercentage: 100},
		},
	}
}

func (w *World) Capacity(priority int) (total float64) {
	for _, s := range w.Priorities[priority] {
		total += s.Capacity() / (1 + w.Costly*max(0, w.CostlyFactor-1))
	}
	return total
}

// Source returns the index that a priority has in the source's answer. If a priority was split by
// distance, all of its parts have the same one.
func (w *World) Source(priority int) int {
	if w.Policy.SourcePriorities == nil {
		return priority
	}
	return w.Policy.SourcePriorities[priority]
}

func (w *World) Entry(priority int) string {
	if w.Entries == nil {
		return ""
	}
	return w.Entries[priority]
}

// Check returns what's wrong with a world. The limits are there so that every run ends in a
// reasonable amount of time.
func (w *World) Check() error {
	servers, pairs := 0, 0
	for p, list := range w.Priorities {
		if servers += len(list); len(list) == 0 {
			return fmt.Errorf("priority %d has no endpoint that gets calls, want at least one: remove the priority", p)
		}
		pairs += len(list) * len(list)
		for _, s := range list {
			if s.Workers < 1 || s.Service <= 0 {
				return fmt.Errorf("priority %d has a server with %d workers and a service time of %v, want both above 0", p, s.Workers, s.Service)
			}
		}
	}
	const connections, most, calls = 100_000, 500_000_000, 20_000_000 // a row at these limits takes two minutes and 1 GB
	switch {
	case servers == 0:
		return errors.New("no priorities given, want at least one")
	case w.Clients < 1 || w.Clients > connections/servers:
		return fmt.Errorf("%d clients of %d endpoints, want 1 to %d connections", w.Clients, servers, connections)
	case w.Clients*pairs > most:
		return fmt.Errorf("%d clients of %d endpoints, want fewer endpoints in a priority: the product of the clients and the squares is at most %d", w.Clients, servers, most)
	case !(w.Rate > 0) || w.Rate*w.Length.Seconds() > calls:
		return fmt.Errorf("%v calls a second for %v, want more than 0 and at most %d calls", w.Rate, w.Length, calls)
	case len(w.Deadlines) == 0:
		return errors.New("no deadlines given, want at least one")
	case slices.Min(w.Deadlines) < 0 || slices.Max(w.Deadlines) > time.Hour:
		return fmt.Errorf("deadlines of %v, want 0 to 1h", w.Deadlines)
	}
	return nil
}
