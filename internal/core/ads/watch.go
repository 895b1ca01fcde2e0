package ads

import "errors"

// Resources that nobody watches any more are kept up to these limits.
const (
	maxKept      = 100
	maxKeptBytes = 16 << 20
)

// Watch adds a watcher of name. Deliver or Fail has what is already known about the
// resource, for the new watcher alone. That includes the failure of the last stream, if
// no other stream has been answered since.
//
// With mayCome, a resource that was missing when nobody watched it may be on its way. It would
// be taken for missing in the moment in which it comes, so it has a short time first.
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

// Unwatch removes a watcher of name. A resource without watchers is still asked for, and
// kept up to date, until the stream ends. Otherwise somebody who watches it again could
// wait for ever: a server that saw no request without the name sees no change, and sends
// nothing. It may have seen none because two requests were sent as one, or because it
// ignores the answer to an earlier response. Some servers send nothing even if they saw
// one. Only a new stream is sure to bring the resource, so where too many are kept, the
// stream is renewed.
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

// keepsTooMuch reports whether more is kept without a watcher than the limits allow.
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

// forgetKept forgets what nobody watches.
func (s *Subscriptions) forgetKept() {
	for name, w := range s.wanted {
		if w.watchers == 0 {
			delete(s.wanted, name)
		}
	}
}

// ErrMissing says that a resource did not come in time, so the server does not have it.
var ErrMissing = errors.New("the server has no such resource")

// ErrSilent says that a resource did not come in time, and nothing else did. A server that
// hangs looks like that, even if it answered before.
var ErrSilent = errors.New("the server has no such resource, or hangs: it has sent nothing since it was asked for it")

// Expired is called when a timer fires. A timer that was stopped, or replaced by
// a later one, changes nothing.
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
