package share

import "time"

const remembered = 10 * time.Second // an endpoint without an answer for so long no longer counts

// Endpoint is an endpoint of a priority. The caller has one for each, and passes it to Begin; the
// zero value is ready for use.
type Endpoint struct {
	failing     bool // its last answer was bad or late
	listed      bool
	seen        time.Duration
	answered    time.Duration // when it last answered
	newer, next *Endpoint     // neighbours in the list; next is older
}

// An endpoint that has answered another call since does not hang.
func (e *Endpoint) answeredSince(t time.Duration) bool { return e != nil && e.answered > t }

// These endpoints have answered lately, the newest first, with a count of those that are failing.
// Each answer moves one to the front and drops what is old at the end, so the cost does not depend
// on their number.
type endpoints struct {
	newest, oldest    *Endpoint
	total, failing    int
	uneven            bool
	aloneAt           time.Duration // when an endpoint last answered and no other one did
	bad               *Endpoint     // whose answer was bad or late the last time
	badAt, otherBadAt time.Duration // when it was, and when that of another one was
}

// A bad or late answer is the endpoint's own fault if the endpoint was bad or late before, and at
// most half of the endpoints are. If calls choose their endpoints, it never is. A call that began
// while the others were ejected is late because of that.
func (l *endpoints) isOwnFault(now, began time.Duration, e *Endpoint, bad bool) bool {
	if e == nil {
		return false
	}
	if bad && l.bad != e {
		l.bad, l.otherBadAt = e, l.badAt
	}
	if bad {
		l.badAt = now
	}
	again := e.listed && e.failing && bad
	l.remove(e)
	e.failing, e.seen = bad, now
	l.add(e)
	for now-l.oldest.seen > remembered {
		l.remove(l.oldest)
	}
	if l.total == 1 {
		l.aloneAt = now
	}
	return again && began >= l.aloneAt && !l.uneven && l.total > 1 && 2*l.failing <= l.total
}

// Forget is called when an endpoint has lost its connection. What it answered no longer tells us if
// the others are full.
func (s *Share) Forget(e *Endpoint) {
	s.endpoints.remove(e)
	e.failing = false
}

func (l *endpoints) othersWereBad(now time.Duration, e *Endpoint) bool {
	at := l.badAt
	if l.bad == e {
		at = l.otherBadAt
	}
	return at > 0 && now-at <= remembered
}

func (l *endpoints) add(e *Endpoint) {
	e.listed, e.newer, e.next = true, nil, l.newest
	if l.newest != nil {
		l.newest.newer = e
	} else {
		l.oldest = e
	}
	l.newest = e
	if l.total++; e.failing {
		l.failing++
	}
}

func (l *endpoints) remove(e *Endpoint) {
	if !e.listed {
		return
	}
	if e.newer != nil {
		e.newer.next = e.next
	} else {
		l.newest = e.next
	}
	if e.next != nil {
		e.next.newer = e.newer
	} else {
		l.oldest = e.newer
	}
	e.listed, e.newer, e.next = false, nil, nil
	if l.total--; e.failing {
		l.failing--
	}
}
