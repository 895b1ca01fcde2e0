// Package ads is the core of an xDS client in its state-of-the-world variant. It decides which
// resources are requested, which responses are accepted, and which resources stay in use while the
// stream is down. A Subscriptions covers one type of resource, on one stream at a time. A resource
// that is missing from a response stays in use. For endpoints, the protocol requires that; for
// clusters, gRFC A53 allows it.
//
// The package is a pure state machine. Each method is an event and returns the resulting actions.
// It is not safe for concurrent use. The rules are those of the xDS transport protocol and of gRFCs
// A27 (ACK and NACK), A57 (stream errors) and A71 (fallback).
package ads

import (
	"maps"
	"slices"
)

type phase int

const (
	down phase = iota
	open
	answered
)

// Subscriptions is the set of subscribed resources and their state.
type Subscriptions struct {
	phase     phase
	heard     bool    // a response of any type was received on this stream
	version   string  // version of the last fully accepted response, on any stream
	rejected  *string // version of the last rejected response on this stream, or nil
	nonce     string  // nonce of the last response on this stream
	responses uint64
	wanted    map[string]*subscription
	timers    uint64
	heards    uint64 // number of responses, on all streams
	failure   error  // the error of the last stream, or nil if that stream received a response
}

type subscription struct {
	watchers int // 0 after the last watcher has left; see Unwatch
	has      bool
	body     []byte // the last good resource
	err      error
	timer    Timer  // the timer's ID is 0 if no timer is running
	asked    uint64 // the value of heards when the timer was started
}

// New returns a state without subscriptions.
func New() *Subscriptions {
	return &Subscriptions{wanted: make(map[string]*subscription)}
}

// Actions contains what must be done after an event, in the order of the fields.
type Actions struct {
	Stop    []Timer
	Start   []Timer   // pass each timer to Expired when it fires
	Deliver []Named   // good resources, for their watchers
	Fail    []Failure // failures of resources without a good update
	Kept    []Failure // rejected updates of resources that have a good one
	Send    *Request  // replaces an unsent request, see Replacing; nil if there is nothing to send
	Later   bool      // Send may be delayed: it rejects a version that was rejected before
	Renew   bool      // end the stream without a failure and open another
}

// Timer limits the wait for a resource. ID distinguishes the timer from earlier timers. Short means
// that the resource was known to be missing and may arrive soon.
type Timer struct {
	Name  string
	ID    uint64
	Short bool
}

// Named is an encoded resource.
type Named struct {
	Name string
	Body []byte
}

// Failure is the reason why a resource is missing. Err is ErrMissing if the server does not have
// the resource, and ErrSilent if it is unclear whether the server has it. With any other error, the
// resource may still arrive.
type Failure struct {
	Name string
	Err  error
}

// Rejected marks the error of a rejected resource.
type Rejected struct{ error }

// Unwrap returns the reason for the rejection.
func (r Rejected) Unwrap() error { return r.error }

// Request is a request to the server. Names is complete and sorted. Reject is the reason for a
// NACK. Version is the version of the last good response; it is empty until a response is received
// on the stream.
type Request struct {
	Names   []string
	Version string
	Nonce   string
	Reject  string

	answers uint64 // the number of the acknowledged response
}

// Replacing returns the request that replaces r and unsent, which may be nil. If both acknowledge
// the same response and unsent rejects it, the result also rejects it.
func (r *Request) Replacing(unsent *Request) *Request {
	if unsent == nil || unsent.Reject == "" || unsent.answers != r.answers {
		return r
	}
	merged := *r
	merged.Reject = unsent.Reject
	return &merged
}

func (s *Subscriptions) names() []string {
	return slices.Sorted(maps.Keys(s.wanted))
}

// request returns the current request. Before the first response on a stream, the request has no
// version, although the protocol asks for the last one. With the current version, a server might
// not respond, and would appear to hang. Other servers treat a version as proof that the client has
// all resources, and would not send new ones.
func (s *Subscriptions) request() *Request {
	r := &Request{Names: s.names(), Nonce: s.nonce, answers: s.responses}
	if s.phase == answered {
		r.Version = s.version
	}
	return r
}

// fail records the reason why there is no good resource. It has no effect if there is a good
// resource.
func (s *Subscriptions) fail(a *Actions, name string, err error) {
	w := s.wanted[name]
	if w.has {
		return
	}
	w.err = err
	if w.watchers > 0 {
		a.Fail = append(a.Fail, Failure{name, err})
	}
}

func (s *Subscriptions) startTimer(a *Actions, name string, short bool) {
	s.timers++
	t := Timer{name, s.timers, short}
	s.wanted[name].timer, s.wanted[name].asked = t, s.heards
	a.Start = append(a.Start, t)
}

func (s *Subscriptions) stopTimer(a *Actions, name string) {
	w := s.wanted[name]
	if w.timer.ID == 0 {
		return
	}
	a.Stop = append(a.Stop, w.timer)
	w.timer = Timer{}
}
