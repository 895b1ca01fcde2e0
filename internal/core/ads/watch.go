package ads

import "errors"

// These limit the resources that stay subscribed although they have no watcher.
const (
	maxKept      = 100
	maxKeptBytes = 16 << 20
)

// Watch adds a watcher of a resource. If the state of the resource is known, it is in Deliver or
// Fail, which are meant only for the new watcher.
//
// mayCome means that the resource may arrive soon, although it was missing when its last watcher
// left. A short timer then delays its failure.
func (s *Subscriptions) Watch(name string, mayCome bool) Actions {
	var a Actions
	w, ok := s.wanted[name]
	if ok {
		w.watchers++
		if w.watchers == 1 && mayCome && s.heard && (w.timer.Short || errors.Is(w.err, ErrMissing)) {
			w.err = nil
			s.stopTimer(&a, name)
			s.startTimer(&a, name, true)
			return a
		}
		switch {
		case w.has:
			a.Deliver = []Named{{name, w.body}}
		case w.err != nil:
			a.Fail = []Failure{{name, w.err}}
		}
		return a
	}
	s.wanted[name] = &subscription{watchers: 1}
	if s.failure != nil {
		s.fail(&a, name, s.failure)
	}
	if s.phase != down {
		s.startTimer(&a, name, false)
		a.Send = s.request()
	}
	return a
}

// Unwatch removes a watcher of a resource. Without watchers, the resource stays subscribed until
// the stream ends. The reason: after an unsubscription, the server might not send the resource
// again on the same stream, because requests may be merged, an outdated request may be ignored, and
// some servers do not send a resource twice. If too many resources have no watcher, the stream is
// renewed.
func (s *Subscriptions) Unwatch(name string) Actions {
	var a Actions
	w, ok := s.wanted[name]
	if !ok || w.watchers == 0 {
		return a
	}
	if w.watchers--; w.watchers > 0 {
		return a
	}
	if s.phase == down {
		s.stopTimer(&a, name)
		delete(s.wanted, name)
		return a
	}
	a.Renew = s.keepsTooMuch()
	return a
}

func (s *Subscriptions) keepsTooMuch() bool {
	count, bytes := 0, 0
	for _, w := range s.wanted {
		if w.watchers == 0 {
			count++
			bytes += len(w.body)
		}
	}
	return count > maxKept || bytes > maxKeptBytes
}

func (s *Subscriptions) forgetKept() {
	for name, w := range s.wanted {
		if w.watchers == 0 {
			delete(s.wanted, name)
		}
	}
}

// ErrMissing means that the server does not have a resource, because it did not send it in time.
var ErrMissing = errors.New("the server has no such resource")

// ErrSilent means that the server sent nothing at all in time, so it may hang.
var ErrSilent = errors.New("the server has no such resource, or hangs: no response since the request")

// Expired is called when a timer fires. It has no effect if the timer was stopped.
func (s *Subscriptions) Expired(t Timer) Actions {
	var a Actions
	w, ok := s.wanted[t.Name]
	if !ok || w.timer != t {
		return a
	}
	w.timer = Timer{}
	why := ErrMissing
	if w.asked == s.heards && !t.Short {
		why = ErrSilent
	}
	s.fail(&a, t.Name, why)
	return a
}
