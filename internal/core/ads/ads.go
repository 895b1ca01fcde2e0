// Package ads is the state machine of an xDS client in the state-of-the-world variant. It decides
// which resources to request, which responses to accept, and which resources to keep while the
// stream is down. It handles one type of resource, on one stream at a time. A resource that is
// missing from a response stays in use. The protocol requires this for endpoints, and gRFC A53
// allows it for clusters.
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
	failure          error // the reason why the last stream ended without a response, or nil
}

type subscription struct {
	watchers        int       // if 0, the resource stays subscribed until the stream ends (see Unwatch)
	good            *Resource // the last good version, without Parsed, or nil
	err             error
	timer           Timer
	responsesBefore uint64 // the number of responses when the timer was started; it shows whether the server has responded since
}

// New returns an empty set of subscriptions.
func New() *Subscriptions {
	return &Subscriptions{subscribed: make(map[string]*subscription)}
}

// Actions lists what to do after an event, in the order of the fields.
type Actions struct {
	Stop    []Timer
	Start   []Timer // when one of these timers fires, Expired must be called
	Deliver []Resource
	Fail    []Failure // resources without a good version
	Kept    []Failure // resources with a good version whose update was rejected
	Send    *Request  // replaces a request that was not sent yet (see Replacing); may be nil
	Later   bool      // Send may be delayed, because the server repeats a version that was already rejected
	Renew   bool      // end the stream and open another one, which is not a failure
}

// Timer limits the wait for a resource. ID distinguishes the timer from earlier timers of the same
// resource. Short means that the timer must be short, because the resource was missing before and
// may arrive soon.
type Timer struct {
	Name  string
	ID    uint64
	Short bool
}

// Resource is a resource in a response, or one that is delivered. Err is the reason why the resource
// is invalid, or nil. Name is "" if the resource cannot be decoded.
type Resource struct {
	Name    string
	Body    []byte
	Version string // the version of the response that contained the resource; set by Received
	Parsed  any    // passed on if Received delivers the resource, but not kept for later watchers
	Err     error
}

// Failure is the reason why a resource is not available. Err is ErrMissing if the server does not
// have the resource, and ErrSilent if the server sent no response at all. After any other error,
// the resource may still arrive.
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

// Replacing returns the request to send instead of r and unsent. unsent is an earlier request that
// is still in the send queue, or nil. If r and unsent acknowledge the same response and unsent is a
// NACK, the result is also a NACK.
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

// request returns a request for all subscribed resources. Before the first response on a stream,
// the request has no version, although the protocol requires the last version. If the request had a
// version, some servers would not respond unless a resource has changed, and would seem to hang.
// Other servers would assume that the client has all resources, and would not send new ones.
func (s *Subscriptions) request() *Request {
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
