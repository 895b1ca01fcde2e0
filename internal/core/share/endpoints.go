package share

import (
	"math"
	"time"
)

const (
	remembered  = 10 * time.Second // an endpoint without answers for this long doesn't count
	lastAnswers = 8                // how many the mean is over, roughly
	fades       = 63. / 64         // what an answer counts for after the next one, when we count who gets the calls
	few         = 32               // with fewer answers, half of the largest sum, we can't tell that
	most        = 2. / 3           // the others can't take over this part of the calls
)

// Endpoint is what we know about an endpoint of a priority. The caller keeps one for each and
// passes it to Begin. The zero value is ready to use.
type Endpoint struct {
	badness     float64 // mean of its last answers, where a bad or late one is 1 and a good one 0
	failing     bool    // badness is high: the last answer was bad, or too many before it were
	count       float64 // of its answers; each fades with the next ones of all endpoints
	countAt     int     // how many answers there were at that time
	listed      bool
	seen        time.Duration
	answered    time.Duration
	newer, next *Endpoint // next is the older neighbor in the list
}

// answeredSince returns true if the endpoint has answered a call since t, which means that it
// doesn't hang.
func (e *Endpoint) answeredSince(t time.Duration) bool { return e != nil && e.answered > t }

// endpoints lists those that have answered recently, newest first, and counts how many are failing.
// Each answer moves an endpoint to the front and drops old ones from the back, so it costs the same
// no matter how many there are.
type endpoints struct {
	newest, oldest    *Endpoint
	total, failing    int
	answers           int
	count             float64 // of the answers; each fades with the next ones
	uneven            bool
	aloneAt           time.Duration // last time that an endpoint answered while no other did
	bad               *Endpoint     // the last endpoint with a bad or late answer
	badAt, otherBadAt time.Duration // when that was, and when another endpoint last had one
}

// isOwnFault says whether a bad or late answer is the endpoint's own fault. It is if the endpoint
// was failing before, and at most half of the endpoints are. Servers that take the newest call
// first answer most calls even when they're full, so the last answer alone wouldn't tell. It never
// is if calls choose their endpoints, or if most of them go to this one, since the others couldn't
// take them over. And if the other endpoints were ejected when the call began, that's why it's
// late.
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
	if !e.listed {
		e.badness, e.failing, e.count = 0, false, 0
	}
	again := e.failing && bad
	l.remove(e)
	e.judge(bad)
	l.answers++
	l.count = l.count*fades + 1
	e.count = e.count*math.Pow(fades, float64(l.answers-e.countAt)) + 1
	e.seen, e.countAt = now, l.answers
	l.add(e)
	for now-l.oldest.seen > remembered {
		l.remove(l.oldest)
	}
	if l.total == 1 {
		l.aloneAt = now
	}
	return again && began >= l.aloneAt && !l.uneven && !l.mostFail() && !l.getsMost(e)
}

// mostFail is true if more than half of the endpoints fail, so that the priority must be full.
func (l *endpoints) mostFail() bool { return 2*l.failing > l.total }

func (l *endpoints) getsMost(e *Endpoint) bool { return e.count > most*max(l.count, few) }

func (e *Endpoint) judge(bad bool) {
	if e.badness -= e.badness / lastAnswers; bad {
		e.badness += 1. / lastAnswers
	}
	e.failing = e.badness >= 1./lastAnswers
}

// Forget is called when an endpoint has lost its connection. Its past answers can't tell us anymore
// whether the rest are full.
func (s *Share) Forget(e *Endpoint) { s.endpoints.remove(e) }

// othersWereBad says whether another endpoint had a bad or late answer just before the given time,
// or later.
func (l *endpoints) othersWereBad(when time.Duration, e *Endpoint) bool {
	at := l.badAt
	if l.bad == e {
		at = l.otherBadAt
	}
	return at > 0 && when-at <= remembered
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
