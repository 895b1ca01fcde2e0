// Package ads decides what a client of xDS, in its state-of-the-world variant,
// says on its stream: which resources it asks for, which responses it accepts, and
// what it believes while the stream is down. A Subscriptions is about one type of
// resource, on one stream at a time. A resource that a server does not send again stays
// as it was. For endpoints that is the protocol; for clusters gRFC A53 allows it.
//
// It is a pure state machine: each method is an event and returns what is to be
// done. It has no goroutines, no clock and no gRPC; nothing in it is safe for
// concurrent use.
//
// The rules are those of the xDS transport protocol, of gRFC A27 (subscription,
// ACK and NACK), of gRFC A57 (what an error of the stream means), and of gRFC A71
// (which of several servers is used).
package ads

import (
	"maps"
	"slices"
)

// phase is how far the current stream has come.
type phase int

const (
	down     phase = iota // there is no stream
	open                  // nothing has been received on it
	answered              // a response has been received on it
)

// Subscriptions holds what a client wants, and what it has. Make one with New.
type Subscriptions struct {
	phase     phase
	heard     bool    // something was received on this stream, of whatever type
	version   string  // of the last response accepted whole; survives a stream, for a NACK
	rejected  *string // version of the last response rejected on this stream, nil if there was none
	nonce     string  // of the last response on this stream
	responses uint64  // how many were received
	wanted    map[string]*subscription
	timers    uint64 // how many were started
	heards    uint64 // how often the server was heard, on all streams
	failure   error  // of the last stream, nil if it was answered or there was none
}

// subscription is one resource that is asked for.
type subscription struct {
	watchers int    // 0: the last one has gone, see Unwatch
	has      bool   // a good one was received
	body     []byte // the last good one
	err      error  // why there is none, if that is known
	timer    Timer  // the one that runs; its ID is 0 for none
	asked    uint64 // heards when the timer was started
}

// New returns a client that wants nothing and has no stream.
func New() *Subscriptions {
	return &Subscriptions{wanted: make(map[string]*subscription)}
}

// Actions are to be carried out after an event, in the order of the fields.
type Actions struct {
	Stop    []Timer   // timers to stop
	Start   []Timer   // timers to start; pass each to Expired when it fires
	Deliver []Named   // good resources, for their watchers
	Fail    []Failure // resources of which no good one is known, and why
	Kept    []Failure // resources of which a bad one was rejected, and the last good one stays
	Send    *Request  // nil: nothing; else it replaces what was not yet sent: see Replacing
	Later   bool      // Send may wait: it rejects a version that was rejected before
	Renew   bool      // end the stream, which is no failure, and open another
}

// Timer limits the time in which a resource must come. ID tells it from earlier ones. Short
// means that the resource was known to be missing, and may be on its way.
type Timer struct {
	Name  string
	ID    uint64
	Short bool
}

// Named is a resource as it was received.
type Named struct {
	Name string
	Body []byte
}

// Failure says why there is no resource of this name. Err is ErrMissing where the
// server does not have the resource, and ErrSilent where that is not clear. Otherwise it may
// still come.
type Failure struct {
	Name string
	Err  error
}

// Rejected is the Err of a Failure where there was a resource, which was rejected.
type Rejected struct{ error }

// Unwrap returns what is wrong with it.
func (r Rejected) Unwrap() error { return r.error }

// Request is what to tell the server. Names is complete and sorted. In a NACK, Reject
// says what is wrong with the response Nonce; otherwise it is empty. Version is that of
// the last good response, and empty until one was received on the stream.
type Request struct {
	Names   []string
	Version string
	Nonce   string
	Reject  string

	answers uint64 // the number of the response
}

// Replacing returns the request to be sent in place of r and of unsent, an earlier
// request that still waits, or nil. If both answer the same response and unsent rejects
// it, so does the result: a change of subscription must not swallow the reason.
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

// request returns what to tell the server now. Until the server answers on a stream, no
// version is named, although the protocol would have the last one named. A server that
// takes it for current may say nothing, which is how one that hangs looks; it may end the
// stream, which then counts as failed. Others take a version to mean "has everything", and
// would not send what is asked for the first time.
func (s *Subscriptions) request() *Request {
	r := &Request{Names: s.names(), Nonce: s.nonce, answers: s.responses}
	if s.phase == answered {
		r.Version = s.version
	}
	return r
}

// fail records why there is no good resource, and says so where there is none.
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
