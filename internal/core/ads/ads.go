// Package ads is the core of an xDS client in its state-of-the-world variant. It decides which
// resources are requested, which responses are accepted, and which resources are in use while the
// stream is down. A Subscriptions covers one type of resource, on one stream at a time. A resource
// that is missing from a response stays in use. For endpoints, the protocol requires that; for
// clusters, gRFC A53 allows it.
//
// The package is a pure state machine: each method is an event and returns the resulting actions.
// It uses no goroutines, clocks or gRPC, and is not safe for concurrent use.
//
// It implements the rules of the xDS transport protocol and of gRFCs A27 (subscription, ACK and
// NACK), A57 (stream errors) and A71 (fallback between servers).
package ads

import (
	"maps"
	"slices"
)

// phase is the state of the current stream.
type phase int

const (
	down     phase = iota // there is no stream
	open                  // no response has been received
	answered              // a response has been received
)

// Subscriptions holds the resources that a client subscribes to and their state. Create it with
// New.
type Subscriptions struct {
	phase     phase
	heard     bool    // a response of any type was received on this stream
	version   string  // of the last fully accepted response; kept across streams for NACKs
	rejected  *string // version of the last rejected response on this stream, nil if none
	nonce     string  // of the last response on this stream
	responses uint64  // number of responses
	wanted    map[string]*subscription
	timers    uint64 // number of timers started
	heards    uint64 // number of responses of any type, on all streams
	failure   error  // the error of the last stream, nil if it received a response
}

// subscription is one requested resource.
type subscription struct {
	watchers int    // 0 after the last watcher left, see Unwatch
	has      bool   // a good resource was received
	body     []byte // the last good resource
	err      error  // why there is no good resource, if known
	timer    Timer  // the running timer; its ID is 0 if there is none
	asked    uint64 // the value of heards when the timer was started
}

// New returns a Subscriptions without resources or a stream.
func New() *Subscriptions {
	return &Subscriptions{wanted: make(map[string]*subscription)}
}

// Actions are the actions to carry out after an event, in the order of the fields.
type Actions struct {
	Stop    []Timer   // timers to stop
	Start   []Timer   // timers to start; pass each to Expired when it fires
	Deliver []Named   // good resources, for their watchers
	Fail    []Failure // resources without a good one, and the reasons
	Kept    []Failure // rejected resources whose last good one stays in use
	Send    *Request  // request to send, or nil; replaces an unsent one, see Replacing
	Later   bool      // Send may be delayed: it rejects a version that was rejected before
	Renew   bool      // end the stream, which is not a failure, and open another
}

// Timer limits the wait for a resource. ID distinguishes it from earlier timers. Short means that
// the resource was known to be missing and may arrive soon.
type Timer struct {
	Name  string
	ID    uint64
	Short bool
}

// Named is the encoding of a resource.
type Named struct {
	Name string
	Body []byte
}

// Failure is the reason why there is no resource of this name. Err is ErrMissing if the server does
// not have the resource, and ErrSilent if that is unclear. After other errors, the resource may
// still arrive.
type Failure struct {
	Name string
	Err  error
}

// Rejected is the Err of a Failure whose resource was rejected.
type Rejected struct{ error }

// Unwrap returns the reason for the rejection.
func (r Rejected) Unwrap() error { return r.error }

// Request is a request to the server. Names is complete and sorted. In a NACK, Reject is the reason
// for rejecting the response Nonce; otherwise it is empty. Version is that of the last good
// response, or empty until one is received on the stream.
type Request struct {
	Names   []string
	Version string
	Nonce   string
	Reject  string

	answers uint64 // the number of the acknowledged response
}

// Replacing returns the request that replaces both r and unsent, an earlier unsent request or nil.
// If both acknowledge the same response and unsent rejects it, the result also rejects it, so that
// a changed subscription does not drop the reason.
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

// request returns the current request. Before the first response on a stream, it has no version,
// although the protocol asks for the last one. A server may not respond to the current version, so
// it would look as if it hangs, and its stream would count as failed. Other servers treat a version
// as proof that the client has all resources, and would not send new ones.
func (s *Subscriptions) request() *Request {
	r := &Request{Names: s.names(), Nonce: s.nonce, answers: s.responses}
	if s.phase == answered {
		r.Version = s.version
	}
	return r
}

// fail records why there is no good resource. It does nothing if there is one.
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
