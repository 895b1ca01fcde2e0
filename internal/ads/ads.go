// Package ads decides what a client of xDS, in its state-of-the-world variant,
// says on its stream: which resources it asks for, which responses it accepts, and
// what it believes while the stream is down. It is about one type of resource that
// a server never deletes (endpoints), on one stream at a time.
//
// It is a pure state machine: each method is an event and returns what is to be
// done. It has no goroutines, no clock and no gRPC; nothing in it is safe for
// concurrent use.
//
// The rules are those of the xDS transport protocol, of gRFC A27 (subscription,
// ACK and NACK) and of gRFC A57 (what an error of the stream means).
package ads

import (
	"bytes"
	"errors"
	"fmt"
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

// Subscriptions is what a client wants, and what it has. Make one with New.
type Subscriptions struct {
	phase   phase
	version string // of the last response accepted whole; survives a stream
	nonce   string // of the last response on this stream
	wanted  map[string]*subscription
	timers  uint64 // how many were started
}

// subscription is one resource that is asked for.
type subscription struct {
	watchers int
	has      bool   // a good one was received
	body     []byte // the last good one
	err      error  // why there is none, if that is known
	timer    uint64 // the one that runs, or 0
}

// New returns a client that wants nothing and has no stream.
func New() *Subscriptions {
	return &Subscriptions{wanted: make(map[string]*subscription)}
}

// Actions is what is to be done after an event, in the order of the fields.
type Actions struct {
	Stop    []Timer   // timers to stop
	Start   []Timer   // timers to start; pass each to Expired when it fires
	Deliver []Named   // good resources, for their watchers
	Fail    []Failure // resources of which no good one is known, and why
	Send    *Request  // nil: nothing; else it replaces what was not yet sent
}

// Timer is the time that a resource has to come. ID tells it from earlier ones.
type Timer struct {
	Name string
	ID   uint64
}

// Named is a resource as it was received.
type Named struct {
	Name string
	Body []byte
}

// Failure says why there is no resource of this name.
type Failure struct {
	Name string
	Err  error
}

// Request is what to tell the server. Names is complete and sorted. Reject is
// empty except in a NACK, where it says what is wrong with the response Nonce, and
// Version is that of the last good response.
type Request struct {
	Names   []string
	Version string
	Nonce   string
	Reject  string
}

// Watch adds a watcher of name. What is already known about the resource is in
// Deliver or Fail, and meant for the new watcher alone.
func (s *Subscriptions) Watch(name string) Actions {
	var a Actions
	w, ok := s.wanted[name]
	if ok {
		w.watchers++
		switch {
		case w.has:
			a.Deliver = []Named{{name, w.body}}
		case w.err != nil:
			a.Fail = []Failure{{name, w.err}}
		}
		return a
	}
	s.wanted[name] = &subscription{watchers: 1}
	if s.phase != down {
		s.startTimer(&a, name)
		a.Send = s.request()
	}
	return a
}

// Unwatch takes away a watcher of name. With the last one the resource is no
// longer asked for, and forgotten. Nothing is sent when nothing is wanted any
// more, since a request without names could be taken to mean every resource: see
// Empty.
func (s *Subscriptions) Unwatch(name string) Actions {
	var a Actions
	w, ok := s.wanted[name]
	if !ok {
		return a
	}
	if w.watchers--; w.watchers > 0 {
		return a
	}
	s.stopTimer(&a, name)
	delete(s.wanted, name)
	if s.phase != down && !s.Empty() {
		a.Send = s.request()
	}
	return a
}

// Empty reports whether nothing is wanted, so that the stream is to be closed.
func (s *Subscriptions) Empty() bool { return len(s.wanted) == 0 }

// Opened begins a new stream: nonces do not outlive a stream, versions do.
func (s *Subscriptions) Opened() Actions {
	var a Actions
	s.phase, s.nonce = open, ""
	if s.Empty() {
		return a
	}
	for _, name := range s.names() {
		if !s.wanted[name].has {
			s.startTimer(&a, name)
		}
	}
	a.Send = s.request()
	return a
}

// Closed ends the stream. What was received stays. A stream that ends without an
// answer is a failure of the server, which err describes; one that ends after an
// answer is not (A57: servers end old streams to spread their clients).
func (s *Subscriptions) Closed(err error) Actions {
	var a Actions
	failed := s.phase != answered
	s.phase = down
	for _, name := range s.names() {
		s.stopTimer(&a, name)
		if failed {
			s.fail(&a, name, err)
		}
	}
	return a
}

// Answered reports whether a response was received on this stream.
func (s *Subscriptions) Answered() bool { return s.phase == answered }

// ErrMissing is in the error of a resource that did not come in time.
var ErrMissing = errors.New("the server has no such resource")

// Expired is called when a timer fires. A timer that was stopped, or replaced by
// a later one, changes nothing.
func (s *Subscriptions) Expired(t Timer) Actions {
	var a Actions
	w, ok := s.wanted[t.Name]
	if !ok || w.timer != t.ID {
		return a
	}
	w.timer = 0
	s.fail(&a, t.Name, ErrMissing)
	return a
}

// fail records why there is no good resource, and says so where there is none.
func (s *Subscriptions) fail(a *Actions, name string, err error) {
	w := s.wanted[name]
	if w.has {
		return
	}
	w.err = err
	a.Fail = append(a.Fail, Failure{name, err})
}

func (s *Subscriptions) startTimer(a *Actions, name string) {
	s.timers++
	s.wanted[name].timer = s.timers
	a.Start = append(a.Start, Timer{name, s.timers})
}

func (s *Subscriptions) stopTimer(a *Actions, name string) {
	w := s.wanted[name]
	if w.timer == 0 {
		return
	}
	a.Stop = append(a.Stop, Timer{name, w.timer})
	w.timer = 0
}

func (s *Subscriptions) names() []string {
	return slices.Sorted(maps.Keys(s.wanted))
}

func (s *Subscriptions) request() *Request {
	return &Request{Names: s.names(), Version: s.version, Nonce: s.nonce}
}

// Resource is one of a response: its name and body, or what is wrong with it. Name
// is empty where not even that can be read.
type Resource struct {
	Name string
	Body []byte
	Err  error
}

// Received takes a response. Good resources that are wanted and new are in
// Deliver, also where others are bad; Send is the ACK or the NACK. A resource that
// was not asked for is ignored, good or bad. One that is wanted and absent keeps
// waiting: a response need not hold every resource of this type.
func (s *Subscriptions) Received(version, nonce string, resources []Resource) Actions {
	var a Actions
	var bad reasons
	s.phase, s.nonce = answered, nonce
	for i, r := range resources {
		w := s.wanted[r.Name]
		switch {
		case r.Err != nil && r.Name == "":
			bad.add(fmt.Sprintf("resource %d", i), r.Err)
		case w == nil:
		case r.Err != nil:
			bad.add(r.Name, r.Err)
			s.stopTimer(&a, r.Name)
			s.fail(&a, r.Name, r.Err)
		default:
			s.stopTimer(&a, r.Name)
			s.accept(&a, w, r)
		}
	}
	if bad.count == 0 {
		s.version = version
	}
	if !s.Empty() {
		a.Send = s.request()
		a.Send.Reject = bad.String()
	}
	return a
}

// accept keeps r. The same bytes again are no news.
func (s *Subscriptions) accept(a *Actions, w *subscription, r Resource) {
	if w.has && bytes.Equal(w.body, r.Body) {
		return
	}
	w.has, w.body, w.err = true, r.Body, nil
	a.Deliver = append(a.Deliver, Named{r.Name, r.Body})
}
