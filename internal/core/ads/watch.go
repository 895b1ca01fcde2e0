package ads

import "errors"

// Without a watcher, so many resources may stay subscribed.
const (
	maxKept      = 100
	maxKeptBytes = 16 << 20
)

// Watch adds a watcher of a resource. Deliver or Fail then have what is known of it, for the new
// watcher alone.
//
// With mayArrive, a resource that was missing when its last watcher left may arrive soon: a short
// timer delays its failure.
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

// Unwatch removes a watcher. A resource without watchers stays subscribed until the stream ends. If
// we unsubscribed and subscribed again, we might never get it on the same stream: requests may be
// merged, an outdated one may be ignored, and some servers send no resource twice. With too many
// resources like that, we renew the stream.
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

// ErrMissing means that the server did not send a resource in time, so it probably does not have
// it.
var ErrMissing = errors.New("the server has no such resource")

// ErrSilent means that the server sent no response at all in time, so it may hang.
var ErrSilent = errors.New("the server has no such resource, or hangs: no response since the request")

// Expired is called when a timer fires. It has no effect if the timer was stopped.
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
