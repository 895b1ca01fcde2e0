package ads

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Opened begins a new stream, on which everything is asked for anew: see request.
func (s *Subscriptions) Opened() Actions {
	var a Actions
	s.phase, s.heard, s.nonce, s.rejected = open, false, "", nil
	if len(s.wanted) == 0 {
		return a
	}
	a.Send = s.request()
	for _, name := range a.Send.Names {
		if w := s.wanted[name]; !w.has && w.timer.ID == 0 {
			s.startTimer(&a, name, false)
		}
	}
	return a
}

// Outset returns what is asked for first on another stream to the same server, nil for nothing. The
// current one stays as it is. If the other takes its place, Closed(nil) and Opened come then.
func (s *Subscriptions) Outset() *Request {
	if len(s.wanted) == 0 {
		return nil
	}
	return &Request{Names: s.names()}
}

// Closed ends the stream. What is watched stays as it was received. The rest is
// forgotten, since no server keeps it up to date.
//
// A stream that ends without an answer is a failure of the server, and err describes it.
// One that ends after an answer is no failure (A57: servers end old streams to spread
// their clients). Nor is one that the client ended to renew it; then err is nil. A
// resource that is missing keeps only the rest of its time. If it were given all of it
// again, a server that ends each stream early would keep it waiting for ever.
func (s *Subscriptions) Closed(err error) Actions {
	var a Actions
	failed := s.phase != answered && err != nil
	s.phase = down
	if failed {
		s.failure = err
	}
	for _, name := range s.names() {
		if failed || s.wanted[name].watchers == 0 {
			s.stopTimer(&a, name)
		}
		if failed {
			s.fail(&a, name, err)
		}
	}
	s.forgetKept()
	return a
}

// Heard takes note of a response of another type on this stream. The server can be reached,
// so what is asked for, or was while it could not be, is waited for.
func (s *Subscriptions) Heard() {
	s.heard = true
	s.heards++
	if s.failure == nil {
		return
	}
	for _, w := range s.wanted {
		if errors.Is(w.err, s.failure) {
			w.err = nil
		}
	}
	s.failure = nil
}

// Await gives what is missing its time anew, where that ran out before the server said
// anything on this stream. Until it is over, nobody is told that there is no such resource.
func (s *Subscriptions) Await() Actions {
	return s.await(func(error) bool { return true })
}

// Again starts the time again of what the server was silent about. It is called before Heard and
// Received, so that the server is believed if it does not send it now.
func (s *Subscriptions) Again() Actions {
	return s.await(func(err error) bool { return errors.Is(err, ErrSilent) })
}

func (s *Subscriptions) await(which func(why error) bool) Actions {
	var a Actions
	if s.phase == down {
		return a // a new stream does so, too
	}
	for _, name := range s.names() {
		w := s.wanted[name]
		if w.has || !which(w.err) {
			continue
		}
		waits := w.timer.ID != 0
		if errors.Is(w.err, ErrSilent) || errors.Is(w.err, ErrMissing) && !waits {
			w.err = nil
		}
		if !waits {
			s.startTimer(&a, name, false)
		}
	}
	return a
}

// Resource is one resource of a response: its name and body, or what is wrong with it.
// Name is empty where not even the name can be read.
type Resource struct {
	Name string
	Body []byte
	Err  error
}

var errTwice = errors.New("the response holds it more than once")

// Received takes a response. Deliver has the good resources that are wanted and new,
// even if others are bad. Send is the ACK or the NACK. A resource that was not asked for
// is ignored, good or bad. If the response holds a name twice, neither resource is good.
// A resource that is wanted and absent keeps waiting: a response need not hold every
// resource of its type.
//
// Some servers answer a NACK with what was rejected. The NACK of a version that was rejected
// before is sent Later, or both sides would go round as fast as the network allows. It is
// sent in the end: many servers send nothing, not even what is mended, before an answer.
func (s *Subscriptions) Received(version, nonce string, resources []Resource) Actions {
	var a Actions
	var bad reasons
	s.Heard()
	s.phase, s.nonce = answered, nonce
	s.responses++
	times := make(map[string]int, len(resources))
	for _, r := range resources {
		times[r.Name]++
	}
	for i, r := range resources {
		w := s.wanted[r.Name]
		switch {
		case r.Err != nil && r.Name == "":
			bad.add(fmt.Sprintf("resource %d", i), r.Err)
		case w == nil || times[r.Name] == 0: // not asked for, or dealt with
		case times[r.Name] > 1:
			times[r.Name] = 0
			s.reject(&a, &bad, r.Name, errTwice)
		case r.Err != nil:
			s.reject(&a, &bad, r.Name, r.Err)
		default:
			s.stopTimer(&a, r.Name)
			s.accept(&a, w, r)
		}
	}
	if bad.count == 0 {
		s.version = version
	}
	if len(s.wanted) > 0 {
		a.Send = s.request()
		a.Send.Reject = bad.String()
	}
	if bad.count > 0 {
		a.Later = s.rejected != nil && *s.rejected == version
		s.rejected = &version
	}
	a.Renew = s.keepsTooMuch()
	return a
}

// reject takes note of what is wrong with a resource.
func (s *Subscriptions) reject(a *Actions, bad *reasons, name string, err error) {
	bad.add(name, err)
	s.stopTimer(a, name)
	s.fail(a, name, Rejected{err})
	if w := s.wanted[name]; w.has && w.watchers > 0 {
		a.Kept = append(a.Kept, Failure{name, Rejected{err}})
	}
}

// accept keeps r. The same bytes again change nothing.
func (s *Subscriptions) accept(a *Actions, w *subscription, r Resource) {
	if w.has && bytes.Equal(w.body, r.Body) {
		return
	}
	w.has, w.body, w.err = true, r.Body, nil
	if w.watchers > 0 {
		a.Deliver = append(a.Deliver, Named{r.Name, r.Body})
	}
}

// A NACK lists each bad resource with its reason. These limits bound it, for a response
// may hold any number of bad resources, each with a reason of any length.
const (
	maxReasons = 20
	maxReason  = 500 // bytes
)

// reasons collects why resources are rejected.
type reasons struct {
	count int
	texts []string
}

func (r *reasons) add(what string, err error) {
	r.count++
	if r.count > maxReasons {
		return
	}
	text := what + ": " + err.Error()
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	r.texts = append(r.texts, text)
}

// String returns the reasons on one line, or nothing where there are none.
func (r *reasons) String() string {
	if r.count > len(r.texts) {
		return fmt.Sprintf("%s; and %d more", strings.Join(r.texts, "; "), r.count-len(r.texts))
	}
	return strings.Join(r.texts, "; ")
}
