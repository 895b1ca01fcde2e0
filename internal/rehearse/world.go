// Package rehearse plays the outage of a fleet in virtual time: clients whose channels decide with
// the cores that real channels use, and servers that can become full, slow or silent. Minutes of
// hundreds of clients take a fraction of a second.
//
//	channel   core/join, core/priority, core/share, core/outlierdetection, core/weightedtarget,
//	          core/weightedroundrobin, core/pickfirst: composed as the policies compose them
//	server    workers, a queue, a deadline that it may not see, a cold start
//	fault     a span of time in which servers are killed, hang, refuse, slow down ...
//
// There is one loop of events, and all chance comes from one seed: a seed is a run. The network is
// a round trip of a millisecond.
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

// Server is an endpoint with workers, each of which serves a call in Service.
type Server struct {
	Workers        int
	Service        time.Duration
	Weight         uint32        // of the endpoint; 0 is 1
	Locality       string        // of the endpoint
	LocalityWeight uint32        // weight of the locality; 0 is 1
	Blind          bool          // it also works on calls whose deadline has passed
	LIFO           bool          // it works on the newest call first
	Limit          int           // it refuses calls while so many are in it; 0 for no limit
	Unavailable    bool          // it refuses with UNAVAILABLE, not RESOURCE_EXHAUSTED
	Cold           time.Duration // at first use it is four times slower, which fades with this time
}

// Capacity returns how many calls the server can answer in a second.
func (s Server) Capacity() float64 { return float64(s.Workers) / s.Service.Seconds() }

// Fault is what can be wrong with a server.
type Fault int

const (
	Killed       Fault = iota // no connections; calls that are under way fail
	Drained                   // no connections; calls that are under way are answered
	Hangs                     // no answers, and the connections stay
	Unreachable               // no packets: connections end by their keepalive, and attempts by their timeout
	Errors                    // INTERNAL at once, for a fraction Factor of the calls; 0 means all
	Unavailable               // UNAVAILABLE at once
	Slow                      // serving takes Factor as long
	Fewer                     // a fraction Factor of the workers
	Pause                     // no call is begun
	SourceSilent              // clients that start get no answer from the source of the priority
	SourceFails               // the source of the priority fails at once
)

// Event is a fault of one server, or of all servers of a priority if Server is All.
type Event struct {
	From, To         time.Duration
	Priority, Server int
	Fault            Fault
	Factor           float64
	Seen             float64 // an Unreachable server is so for this fraction of the clients; 0 means all
}

// How long connections and attempts to an unreachable server last: that of the recommended
// keepalive, and gRPC's least time for an attempt.
const (
	keepalive      = 15 * time.Second
	connectTimeout = 20 * time.Second
)

// All is the Server of an event that concerns all servers of a priority.
const All = -1

func (e *Event) hits(s *server, now time.Duration) bool {
	return now >= e.From && now < e.To && e.concerns(s)
}

func (e *Event) concerns(s *server) bool {
	return e.Priority == s.priority && (e.Server == All || e.Server == s.index)
}

// Span is a time from the begin of a run to another one.
type Span struct{ From, To time.Duration }

func (s Span) Has(t time.Duration) bool { return t >= s.From && t < s.To }

// Spike is another rate for a while.
type Spike struct {
	Rate float64
	Span
}

type World struct {
	Priorities [][]Server
	Entries    []string  // by priority: the entry of the target whose source has it; nil if there is one
	Drop       []float64 // by priority: the fraction of the calls that clients drop; nil for none
	Clients    int
	Rate       float64         // calls in a second, of all clients
	Deadlines  []time.Duration // of the clients in turn; 0 for none
	Length     time.Duration
	Spikes     []Spike
	Events     []Event
	Restart    time.Duration // all clients are replaced by new ones; 0 for never

	Costly, CostlyFactor float64 // a fraction of the calls takes so many times longer
	Expire, Fail         float64 // fractions of the calls that expire or fail (INTERNAL) by nature
	Tokens               float64 // of the retry throttle, for UNAVAILABLE; 0 for no retries
	RoundRobin           float64 // fraction of the clients that use gRPC's round_robin over all servers
	Subset               int     // each client uses so many endpoints of a priority, at random; 0 for all
	Policy               Policy
}

// Policy is the configuration of the clients.
type Policy struct {
	core.Config       // but the names of children
	Share             share.Config
	MaxConnectBackoff time.Duration
	Ejection          outlierdetection.Config // with a zero value, none
}

// Recommended returns the recommended policy. A test compares it with the options of that name.
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

// Capacity returns how many calls a priority can answer in a second.
func (w *World) Capacity(priority int) (total float64) {
	for _, s := range w.Priorities[priority] {
		total += s.Capacity() / (1 + w.Costly*max(0, w.CostlyFactor-1))
	}
	return total
}

// Source returns the number of the source's priority of which a priority is a near group.
func (w *World) Source(priority int) int {
	if w.Policy.SourcePriorities == nil {
		return priority
	}
	return w.Policy.SourcePriorities[priority]
}

// Entry returns the entry of the target that a priority comes from.
func (w *World) Entry(priority int) string {
	if w.Entries == nil {
		return ""
	}
	return w.Entries[priority]
}

// Check returns what is wrong with a world. What it does not bound would make a run endless.
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
	const connections, most, calls = 100_000, 500_000_000, 20_000_000 // a row then takes two minutes and 1 GB
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
