// Package share decides how many of the calls a priority takes. Every priority of a channel has a
// Share, which is a number from 0 to 1. We offer each call to the READY priorities in order, and a
// priority takes it with the probability of its share. If all shares are 1, that's what gRFC A56
// does.
//
// Here's testdata/shares/example.txt, a client with ten calls a second:
//
//	 0.0 s   1      twelve good answers, then two are refused
//	 1.4 s   0.7    full: two failures, and more than an eighth
//	 6.4 s   0.80   no failures: 0.02 more each second
//	 6.5 s   0      broken: ten errors in a row open the breaker
//	 7.5 s   0      after ten calls elsewhere and a second, one call is a probe, and fails
//	 9.5 s   0      the next one, two seconds later, is answered
//	 9.6 s   1/16   slow start: the share doubles each two seconds
//	16.6 s   0.52   up to the threshold, 0.7 of what it was before it fell; then 0.02 a second
//
// It combines three well-known techniques: additive increase and multiplicative decrease with slow
// start, as in TCP; a circuit breaker whose probes back off; and a latency gradient.
//
// This is a state machine without locks or a clock. Calls come in two kinds:
//
//	timed    Take or Probe, then Begin, and End with any result
//	untimed  only while View.Free: keeps View.Stamp, and calls End if it fails or View.Watch is set
package share

import (
	"cmp"
	"time"
)

// We found these by measuring. Nearby values do worse in the worlds of internal/testing/overload.
const (
	slowStart = 1. / 16                // share after a successful probe; the breaker opens below it
	lastShare = 0.4                    // the last READY priority never goes below this
	decrease  = 0.7                    // a cut leaves this much of the share
	increase  = 0.02                   // the share grows this much per second above the threshold
	window    = time.Second            // we judge answers together in windows of at least this length
	enough    = 16                     // and at least this many answers
	stale     = 5 * time.Second        // after this long without answers, the window starts over with the next one
	filling   = 1. / 4                 // an answer that takes this fraction of its budget is a sign of a queue
	late      = 0.4                    // an answer is late if it takes this fraction of its budget
	streamAge = 10 * time.Second       // a stream that's been open this long counts as an answer
	quiet     = 500 * time.Millisecond // a silence shorter than this doesn't mean anything
	trickle   = 200 * time.Millisecond // how often calls go to a silent priority
	trickleOf = 10                     // or this part of the silence if that's longer, as deadlines may be long
	endless   = 2 * time.Second        // with no deadline on the calls, this much silence opens the breaker
	gone      = time.Second            // if connections come back sooner, they aren't cold
)

// defaultRamp is how long slow start takes to get to a share of 1.
const defaultRamp = 8 * time.Second

// Share is the share of a priority in one channel. It has no lock, so callers need one. In its
// methods, now is the time since an arbitrary fixed moment.
type Share struct {
	fraction   float64 // of the calls; 0 while the breaker is open
	threshold  float64 // the share at which slow start ends
	fallen     float64 // what was left of the share after the last cut
	carried    float64 // the largest fraction since load last made it fall
	raisedFrom float64 // the fraction before this became the last priority
	raisedAt   time.Duration
	last       bool // no lower priority is READY
	wanted     bool
	failing    bool // this is the last priority, and it has no good answers
	cause      Cause
	doubling   time.Duration

	epoch     uint32 // number of the last cut; calls from before it don't count
	cutAt     time.Duration
	grownAt   time.Duration
	lastCall  time.Duration
	goodAt    time.Duration
	answerAt  time.Duration
	lostAt    time.Duration // when the first of the recently lost connections was lost
	recent    time.Duration
	answers   tally
	breaker   breaker
	pressure  pressure
	silence   silence
	row       row
	streams   streams
	methods   methods
	endpoints endpoints
	sampling  sampling
}

type tally struct {
	began           time.Duration
	total, failures int
}

type Config struct {
	Ramp   time.Duration // time for slow start to reach a share of 1; 0 means 8 s, but servers with cold caches need more
	Uneven bool          // calls choose their endpoint, so don't blame one for being fuller than the rest
}

func New(now time.Duration, c Config) *Share {
	s := &Share{fraction: 1, threshold: 1, raisedFrom: 1, doubling: cmp.Or(c.Ramp, defaultRamp) / 4, lastCall: now, answerAt: now, silence: silence{number: 1}, sampling: sampling{every: 1}}
	s.endpoints.uneven = c.Uneven
	s.renew(now)
	return s
}

type Cause uint8

const (
	Nothing Cause = iota
	Full          // too many calls were refused, expired or UNAVAILABLE
	Slow
	Hanging   // no answer for a whole deadline
	Broken    // there were many errors in a row
	Returning // its connections came back, and it may be cold
)

func (c Cause) String() string {
	return [...]string{"nothing", "full", "slow", "hanging", "broken", "returning"}[c]
}

func (s *Share) Fraction() (float64, Cause) { return s.fraction, s.cause }

// Tripped returns true while the breaker is open and only probes get through.
func (s *Share) Tripped() bool { return s.fraction == 0 }

// SetLast says whether this is the last READY priority. If it has just become that, its breaker
// closes, because any calls it doesn't take now would be refused. It goes back to what it carried
// before it fell, unless it fell because of load. If a lower one was only reconnecting, and there
// was no good answer meanwhile, it returns to the share it had.
func (s *Share) SetLast(now time.Duration, last bool) {
	switch to := max(lastShare, s.carried); {
	case last && !s.last && s.fraction < to:
		s.raisedFrom, s.raisedAt, s.fraction = s.fraction, now, to
		s.renew(now)
	case !last && s.last && now-s.raisedAt < gone && (s.goodAt < s.raisedAt || s.cause == Returning) && s.fraction > s.raisedFrom:
		s.fraction = s.raisedFrom
		s.renew(now)
	}
	s.last, s.wanted, s.failing = last, s.wanted && last, s.failing && last
}

// Returned is called, after SetLast, when the priority becomes READY again while a lower one is
// READY. absent is how long it had no connections. For a new priority, it's more than a second.
func (s *Share) Returned(now, absent time.Duration) {
	s.silence.answered()
	if absent >= gone {
		s.trip(now, Returning)
	}
}

// Look returns when we last had a good answer, or 0 if never. It also counts streams that have
// stayed open. We may have missed some answers, because while the view is free and nothing is
// watched, we don't see every call.
func (s *Share) Look(now time.Duration) (goodAt time.Duration) {
	if s.streams.answer(now) {
		s.succeeded(now)
		s.grow(now, streamAge)
	}
	return s.goodAt
}

func (s *Share) succeeded(now time.Duration) { s.failing, s.goodAt = false, now }

// Take returns true if the priority should take the call. random is in [0, 1). If the caller then
// finds no connection and never begins the call, that's fine.
func (s *Share) Take(now time.Duration, random float64) bool {
	s.Look(now)
	if s.fraction == 0 {
		return s.breaker.isDue(now - s.lastCall)
	}
	if !s.last && s.silence.lasts(now, s.methods.usual) {
		if s.silence.endless && s.silence.length(now) >= endless && s.trip(now, Hanging) {
			return false
		}
		return now-s.lastCall >= max(trickle, s.silence.length(now)/trickleOf)
	}
	return random < s.weight()
}

// Probe returns true if the priority should take, as a probe, a call that would otherwise be
// refused or have to wait.
func (s *Share) Probe(now time.Duration) bool {
	return s.fraction == 0 && now-s.lastCall >= time.Second
}

// weight is the probability of taking a call. While the priority is filling up, the gradient makes
// it lower than the share.
func (s *Share) weight() float64 {
	if s.pressure.above(filling) && (!s.last || s.fraction < 1) {
		return s.fraction * max(0, 1+filling-s.pressure.mean)
	}
	return s.fraction
}

type Call struct {
	began    time.Duration
	budget   time.Duration // 0 if there's no deadline
	method   *method       // only set if there's no deadline
	endpoint *Endpoint
	stamp    Stamp
	wait     uint32 // number of the silence that it's part of, or 0
	kind     kind
}

type kind uint8

const (
	untimed kind = iota
	timed
	stream
)

// Stamp remembers after which cut and in which row of errors a call began.
type Stamp struct{ epoch, row uint32 }

// Untimed is an untimed call that has ended. The endpoint may be nil.
func Untimed(s Stamp, e *Endpoint) Call { return Call{stamp: s, endpoint: e} }

// Begin is called for each timed call that the priority takes. budget is the time until its
// deadline. If there's none, it's 0 and we need the method.
func (s *Share) Begin(now, budget time.Duration, method string, endpoint *Endpoint) Call {
	s.sampling.count(now, s.free())
	s.lastCall = now
	if s.fraction == 0 {
		s.breaker.probe()
	}
	c := Call{began: now, budget: budget, endpoint: endpoint, stamp: s.stamp(), kind: timed}
	if budget == 0 {
		c.method = s.methods.find(now, method)
		if c.method.begin(now); c.method.isStream() {
			c.kind = stream
			s.streams.begin(now)
			return c
		}
	}
	c.wait = s.silence.begin(now, budget == 0)
	return c
}

func (s *Share) stamp() Stamp { return Stamp{s.epoch, s.row.number} }

// View is what a picker can cache in atomics after each method call, so that most calls don't need
// to lock anything.
type View struct {
	// Free means that every call is taken, so there's no need to call Take.
	Free bool
	// Every means that one call out of this many must be timed. It's a power of two. If the view
	// isn't Free, time all calls.
	Every uint32
	// Watch means that untimed calls must call End even if they succeed.
	Watch bool
	Stamp Stamp
}

func (s *Share) View() View {
	return View{Free: s.free(), Every: s.sampling.every, Watch: s.row.length > 0 || s.silence.noticed || s.failing, Stamp: s.stamp()}
}

func (s *Share) free() bool { return s.fraction == 1 && s.weight() == 1 && !s.silence.noticed }
