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
	down phase = iota
	open
	answered
)

// Subscriptions is the set of subscribed resources and their state.
type Subscriptions struct {
	phase     phase
	heard     bool
	version   string // version of the last acknowledged response; it outlives the stream
	rejected  *string
	nonce     string
	responses uint64
	wanted    map[string]*subscription
	timers    uint64
	heards    uint64
	failure   error // why the last stream ended; nil if it had a response
}

type subscription struct {
	watchers int // if 0, the resource stays subscribed until the stream ends, see Unwatch
	has      bool
	body     []byte
	err      error
	timer    Timer
	asked    uint64 // value of heards when the timer was started; if it is unchanged when the timer fires, the server sent nothing
}

// New returns an empty set of subscriptions.
func New() *Subscriptions {
	return &Subscriptions{wanted: make(map[string]*subscription)}
}

// Actions lists what to do after an event, in the order of the fields.
type Actions struct {
	Stop    []Timer
	Start   []Timer // when one of these fires, Expired must be called
	Deliver []Named
	Fail    []Failure // resources that have no good version, and why
	Kept    []Failure // resources with a good version whose update was rejected
	Send    *Request  // replaces a request that was not sent yet (see Replacing); may be nil
	Later   bool      // Send may be delayed, because the server repeats a version that was already rejected
	Renew   bool      // end the stream and open another one, which is not a failure
}

// Timer limits the wait for a resource. ID distinguishes it from earlier timers of the same
// resource. If Short is set, the wait is short: the resource was missing before and may arrive
// soon.
type Timer struct {
	Name  string
	ID    uint64
	Short bool
}

// Named is an encoded resource with its name.
type Named struct {
	Name string
	Body []byte
}

// Failure says why a resource is missing. Err is ErrMissing if the server does not have the
// resource, and ErrSilent if the server sent nothing at all. After any other error, the resource
// may still arrive.
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

	answers uint64
}

// Replacing returns the request to send instead of r and of unsent, an earlier request that is
// still in the send queue, or nil. If both acknowledge the same response and unsent is a NACK, the
// result is also a NACK.
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

// request returns a request for all subscribed resources. Before the first response on a stream, it
// has no version, although the protocol asks for the last one. With a version, a server might see
// that nothing has changed and not respond, so that it seems to hang. Other servers would assume
// that the client has all resources, and not send new ones.
func (s *Subscriptions) request() *Request {
	r := &Request{Names: s.names(), Nonce: s.nonce, answers: s.responses}
	if s.phase == answered {
		r.Version = s.version
	}
	return r
}

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
