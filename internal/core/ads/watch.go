package ads

import "errors"

// These are the limits on resources that are kept without watchers.
const (
	maxKept      = 100
	maxKeptBytes = 16 << 20
)

// Watch adds a watcher of name. Deliver or Fail contains the current state of the resource, which
// is meant only for the new watcher.
//
// mayCome means that a resource that was missing when its last watcher left may arrive soon. A
// short timer then delays the resource's failure.
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

// Unwatch removes a watcher of name. A resource without watchers remains subscribed until the
// stream ends. If the client unsubscribed and later requested the resource again, the server might
// not send it: two requests may be merged, an outdated request may be ignored, and some servers do
// not resend resources. Only on a new stream is the resource certain to be sent. If too many such
// resources accumulate, the stream is renewed.
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

// ErrMissing means that the server does not have a resource. The client concludes this when the
// resource does not arrive in time.
var ErrMissing = errors.New("the server has no such resource")

// ErrSilent means that no response arrived in time. The server may hang.
var ErrSilent = errors.New("the server has no such resource, or hangs: no response since the request")

// Expired is called when a timer fires. A stopped timer has no effect.
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
