package ads

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Opened is called after a stream has opened. It requests all resources.
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

// Outset returns the first request for a second stream, which is opened while the first is still in
// use. It is nil without subscriptions. Once the second stream replaces the first, the caller calls
// Closed(nil) and Opened.
func (s *Subscriptions) Outset() *Request {
	if len(s.wanted) == 0 {
		return nil
	}
	return &Request{Names: s.names()}
}

// Closed is called when the stream has ended. Watched resources stay in use. Others are dropped,
// because the server no longer updates them.
//
// The end of a stream without a response is a failure, and err is the reason. After a response it
// is no failure, because servers end streams to rebalance their clients (gRFC A57). err is nil if
// the client itself has renewed the stream. Timers keep running: if they were restarted, a server
// that ends each stream early would delay them forever.
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

// Heard is called when a response about another type of resource arrives. It shows that the stream
// works, so resources that failed only because the last stream failed become pending again.
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

// Await restarts the timers that expired before the server responded on this stream. Their
// resources are reported as missing only if the timers expire again.
func (s *Subscriptions) Await() Actions {
	return s.await(func(error) bool { return true })
}

// Again is called when a server responds after it was reported as silent. It restarts the timers
// that expired with ErrSilent. The caller must call it before Heard and Received.
func (s *Subscriptions) Again() Actions {
	return s.await(func(err error) bool { return errors.Is(err, ErrSilent) })
}

func (s *Subscriptions) await(which func(why error) bool) Actions {
	var a Actions
	if s.phase == down {
		return a // Opened will start the timers
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

// Resource is a resource in a response. Err says why it is invalid. Name is "" if it cannot be
// decoded.
type Resource struct {
	Name string
	Body []byte
	Err  error
}

var errTwice = errors.New("the response contains it more than once")

// Received is called when a response has arrived. Deliver contains the good resources that have
// changed, even if others are invalid. Send is the ACK or NACK. Resources without a subscription
// are ignored, and resources with the same name are rejected. A requested resource that is not in
// the response stays pending, because a response need not be complete.
//
// Some servers repeat a response after a NACK. If the client replied to each one at once, both
// sides would be in a busy loop. The NACK of a version that was already rejected is therefore sent
// Later. It must be sent, because many servers send nothing without a reply.
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
		case w == nil || times[r.Name] == 0: // no subscription, or a duplicate that was already rejected
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

func (s *Subscriptions) reject(a *Actions, bad *reasons, name string, err error) {
	bad.add(name, err)
	s.stopTimer(a, name)
	s.fail(a, name, Rejected{err})
	if w := s.wanted[name]; w.has && w.watchers > 0 {
		a.Kept = append(a.Kept, Failure{name, Rejected{err}})
	}
}

func (s *Subscriptions) accept(a *Actions, w *subscription, r Resource) {
	if w.has && bytes.Equal(w.body, r.Body) {
		return
	}
	w.has, w.body, w.err = true, r.Body, nil
	if w.watchers > 0 {
		a.Deliver = append(a.Deliver, Named{r.Name, r.Body})
	}
}

// These limit how many invalid resources a NACK lists, and the bytes of each reason.
const (
	maxReasons = 20
	maxReason  = 500
)

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

func (r *reasons) String() string {
	if r.count > len(r.texts) {
		return fmt.Sprintf("%s; and %d more", strings.Join(r.texts, "; "), r.count-len(r.texts))
	}
	return strings.Join(r.texts, "; ")
}
