// Package ads is the state machine of an xDS client in the state-of-the-world variant. It decides what
// we request, which responses we accept, and what we keep while the stream is down, for one type of
// resource on one stream at a time. A resource that is missing from a response stays in use: the
// protocol requires this for endpoints, and gRFC A53 allows it for clusters.
//
// The package has no goroutines, locks or clock. Each event is a method that returns the actions to
// execute. It is not safe for concurrent use. The rules are those of the xDS transport protocol and
// of gRFCs A27 (ACK and NACK), A57 (errors of streams) and A71 (fallback).
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

// Subscriptions is the set of subscribed resources and their state.
type Subscriptions struct {
	phase            phase
	anyResponse      bool
	version          string // version of the last acknowledged response, also after the end of its stream
	rejectedVersion  *string
	nonce            string
	responseCount    uint64
	subscribed       map[string]*subscription
	timerCount       uint64
	allResponseCount uint64
	failure          error // why the last stream ended without a response, or nil
}

type subscription struct {
	watchers        int       // if 0, the resource stays subscribed until the stream ends (see Unwatch)
	good            *Resource // the last good version, without Parsed, or nil
	err             error
	timer           Timer
	responsesBefore uint64 // allResponseCount when the timer was started: has the server responded since?
}

// New returns an empty set of subscriptions.
func New() *Subscriptions {
	return &Subscriptions{subscribed: make(map[string]*subscription)}
}

// Actions lists what to do after an event, in the order of the fields.
type Actions struct {
	Stop    []Timer
	Start   []Timer // call Expired when one of them fires
	Deliver []Resource
	Fail    []Failure // resources without a good version
	Kept    []Failure // resources with a good version whose update was rejected
	Send    *Request  // replaces a request that was not sent yet (see Replacing); may be nil
	Later   bool      // Send may wait: the server repeats a version that we have rejected
	Renew   bool      // end the stream and open another one, which is no failure
}

// Timer limits the wait for a resource. ID tells it from earlier timers of the same resource. Short
// is for a resource that was missing before, and may arrive soon.
type Timer struct {
	Name  string
	ID    uint64
	Short bool
}

// Resource is a resource in a response, or one to deliver. Err is why it is invalid, or nil. Name
// is "" if it cannot be decoded.
type Resource struct {
	Name    string
	Body    []byte
	Version string // the version of the response that contained the resource; set by Received
	Parsed  any    // passed on if Received delivers the resource, but not kept for later watchers
	Err     error
}

// Failure is why a resource is not available: ErrMissing if the server does not have it, ErrSilent
// if the server has sent no response at all. After any other error, it may still arrive.
type Failure struct {
	Name string
	Err  error
}

// Rejected marks the error of a rejected resource.
type Rejected struct{ error }

func (r Rejected) Unwrap() error { return r.error }

// Request is a discovery request, an ACK or a NACK. Names lists all resources, sorted. Version is
// the version of the last good response, or empty before the first response on the stream. Reject
// is the reason for a NACK.
type Request struct {
	Names   []string
	Version string
	Nonce   string
	Reject  string

	responseCount uint64
}

// Replacing returns what to send instead of r and unsent, an earlier request that is still in the
// queue, or nil. A NACK stays one if both acknowledge the same response.
func (r *Request) Replacing(unsent *Request) *Request {
	if unsent == nil || unsent.Reject == "" || unsent.responseCount != r.responseCount {
		return r
	}
	merged := *r
	merged.Reject = unsent.Reject
	return &merged
}

// Names returns the names of all subscribed resources, sorted.
func (s *Subscriptions) Names() []string {
	return slices.Sorted(maps.Keys(s.subscribed))
}

func (s *Subscriptions) request() *Request {
	// The protocol wants the last version in the first request of a stream, too. We leave it out:
	// with it, some servers do not respond before a resource changes, and seem to hang; others take
	// it that we have everything, and send nothing new.
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
