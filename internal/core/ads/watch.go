package ads

import "errors"

// We keep this many resources that nobody watches. Beyond that, we renew the stream.
const (
	maxKept      = 100
	maxKeptBytes = 16 << 20
)

// Watch adds a watcher for a resource. If we already know something about the resource, it's in
// Deliver or Fail, and it concerns only the new watcher.
//
// With mayArrive, a resource that was missing when its last watcher left gets another chance: we
// start a short timer before we report it as missing.
func (s *Subscriptions) Watch(name string, mayArrive bool) Actions {
	var a Actions
	if w, ok := s.subscribed[name]; ok {
		w.watchers++
		switch {
		case w.watchers == 1 && mayArrive && s.anyResponse && (w.timer.Short || errors.Is(w.err, ErrMissing)):
			w.err = nil
			s.stopTimer(&a, name)
			s.startTimer(&a, name, true)
		case w.good != nil:
			a.Deliver = []Resource{*w.good}
		case w.err != nil:
			a.Fail = []Failure{{name, w.err}}
		}
		return a
	}
	s.subscribed[name] = &subscription{watchers: 1}
	if s.failure != nil {
		s.fail(&a, name, s.failure)
	}
	if s.phase != streamDown {
		s.startTimer(&a, name, false)
		a.Send = s.request()
	}
	return a
}

// Unwatch removes a watcher. When the last one leaves, we don't unsubscribe until the stream ends.
// If we unsubscribed and came back later, we might never see the resource again on this stream: the
// two requests may get merged, the server may ignore an outdated one, and some servers don't send
// the same resource twice. If too many unwatched resources pile up, we renew the stream.
func (s *Subscriptions) Unwatch(name string) Actions {
	var a Actions
	w := s.subscribed[name]
	w.watchers--
	switch {
	case w.watchers > 0:
	case s.phase == streamDown:
		s.stopTimer(&a, name)
		delete(s.subscribed, name)
	default:
		a.Renew = s.exceedsLimits()
	}
	return a
}

func (s *Subscriptions) exceedsLimits() bool {
	count, bytes := 0, 0
	for _, w := range s.subscribed {
		if w.watchers > 0 {
			continue
		}
		if count++; w.good != nil {
			bytes += len(w.good.Body)
		}
	}
	return count > maxKept || bytes > maxKeptBytes
}

// ErrMissing means that the server didn't send the resource in time. It most likely doesn't have
// it.
var ErrMissing = errors.New("the server has no such resource")

// ErrSilent means that the server didn't send anything at all in time. It may be hanging.
var ErrSilent = errors.New("the server has no such resource, or hangs: no response since the request")

// Expired is called when a timer fires. If the timer was stopped in the meantime, it does nothing.
func (s *Subscriptions) Expired(t Timer) Actions {
	var a Actions
	w, ok := s.subscribed[t.Name]
	if !ok || w.timer != t {
		return a
	}
	w.timer = Timer{}
	reason := ErrMissing
	if w.responsesBefore == s.allResponseCount && !t.Short {
		reason = ErrSilent
	}
	s.fail(&a, t.Name, reason)
	return a
}
