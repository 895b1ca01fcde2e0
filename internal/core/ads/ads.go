// Package ads implements the client side of the xDS transport protocol (state of the world) for one
// type of resource on one stream. It decides what to request, which responses to accept, and what
// to keep using while the stream is down. A resource that's missing from a response stays in use.
// The protocol demands that for endpoints, and gRFC A53 allows it for clusters.
//
// This is a pure state machine: every event is a method that returns the actions to execute, and
// there are no goroutines, locks or clocks in here. It is not safe for concurrent use. Besides the
// protocol's own rules, it follows gRFCs A27 (ACK and NACK), A57 (stream errors) and A71
// (fallback).
package ads

import (
	"maps"
	"slices"
)

type phase int

const (
	streamDown phase = iota
	streamOpen
	streamAnswered
)

type Subscriptions struct {
	phase            phase
	anyResponse      bool
	version          string // last one we acknowledged; kept when the stream ends
	rejectedVersion  *string
	nonce            string
	responseCount    uint64
	subscribed       map[string]*subscription
	timerCount       uint64
	allResponseCount uint64
	failure          error // why the last stream ended; nil if it had a response
}

type subscription struct {
	watchers        int       // at 0, we still don't unsubscribe until the stream ends (see Unwatch)
	good            *Resource // nil until we have a good version; Parsed is dropped
	err             error
	timer           Timer
	responsesBefore uint64 // allResponseCount when the timer started, to tell whether the server has responded since
}

func New() *Subscriptions {
	return &Subscriptions{subscribed: make(map[string]*subscription)}
}

// Actions is what the caller must do after an event, in the order of the fields.
type Actions struct {
	Stop    []Timer
	Start   []Timer
	Deliver []Resource
	Fail    []Failure // resources without a good version
	Kept    []Failure // resources whose update we rejected, but which still have a good version
	Send    *Request  // may be nil; replaces any request that hasn't been sent yet (see Replacing)
	Later   bool      // Send can wait, since the server is only repeating a version we've rejected
	Renew   bool      // end the stream and open a new one; this doesn't count as a failure
}

// Timer limits how long we wait for a resource. The ID distinguishes it from earlier timers for the
// same resource. A Short timer is used when the resource was missing before but might show up soon.
type Timer struct {
	Name  string
	ID    uint64
	Short bool
}

// Resource is a resource that we received or that we deliver to watchers. Err is set if it's
// invalid, and Name is empty if we couldn't even decode it.
type Resource struct {
	Name    string
	Body    []byte
	Version string // version of the response it came in; set by Received
	Parsed  any    // handed over with the first delivery, but not kept for later watchers
	Err     error
}

// Failure says that a resource isn't available. Err is ErrMissing if the server doesn't have it, or
// ErrSilent if the server hasn't responded at all. With any other error, the resource may still
// arrive.
type Failure struct {
	Name string
	Err  error
}

type Rejected struct{ error }

func (r Rejected) Unwrap() error { return r.error }

// Request is a discovery request, an ACK or a NACK. Names is the complete, sorted list of
// resources. Version is that of the last good response, and empty until we've had a response on
// this stream. If Reject is set, this is a NACK and Reject gives the reason.
type Request struct {
	Names   []string
	Version string
	Nonce   string
	Reject  string

	responseCount uint64
}

// Replacing merges r with an earlier request that's still in the queue (or nil), and returns what
// to send instead of the two. If both answer the same response and the earlier one was a NACK, the
// result must be a NACK too.
func (r *Request) Replacing(unsent *Request) *Request {
	if unsent == nil || unsent.Reject == "" || unsent.responseCount != r.responseCount {
		return r
	}
	merged := *r
	merged.Reject = unsent.Reject
	return &merged
}

func (s *Subscriptions) Names() []string {
	return slices.Sorted(maps.Keys(s.subscribed))
}

func (s *Subscriptions) request() *Request {
	// The protocol says that the first request on a new stream should carry the last version. We
	// don't do that: given a version, some servers won't respond until a resource changes, so they
	// look as if they hang, and others assume that we have everything and only send what's new.
	r := &Request{Names: s.Names(), Nonce: s.nonce, responseCount: s.responseCount}
	if s.phase == streamAnswered {
		r.Version = s.version
	}
	return r
}

func (s *Subscriptions) fail(a *Actions, name string, err error) {
	w := s.subscribed[name]
	if w.good != nil {
		return
	}
	w.err = err
	if w.watchers > 0 {
		a.Fail = append(a.Fail, Failure{name, err})
	}
}

func (s *Subscriptions) startTimer(a *Actions, name string, short bool) {
	s.timerCount++
	t := Timer{name, s.timerCount, short}
	s.subscribed[name].timer, s.subscribed[name].responsesBefore = t, s.allResponseCount
	a.Start = append(a.Start, t)
}

func (s *Subscriptions) stopTimer(a *Actions, name string) {
	w := s.subscribed[name]
	if w.timer.ID == 0 {
		return
	}
	a.Stop = append(a.Stop, w.timer)
	w.timer = Timer{}
}
