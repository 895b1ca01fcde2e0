// Package share decides how many of the calls a priority takes. There is one Share for each channel
// and priority, from 0 to 1. Calls are offered to the READY priorities in order, and each takes
// them with the probability of its share. With shares of 1, that is gRFC A56.
//
// testdata/shares/example.txt, a client with ten calls a second:
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
// These are three known things together: additive increase and multiplicative decrease with slow
// start (TCP), a circuit breaker whose probes back off, and a latency gradient.
//
// The package is a state machine without locks or a clock. A call is one of two kinds:
//
//	timed    Take or Probe, then Begin, and End with any result
//	untimed  only while View.Free: keeps View.Stamp, and calls End if it fails or View.Watch is set
package share

import (
	"cmp"
	"time"
)

// The measured constants. Times and fractions around them do worse in the worlds of
// internal/testing/overload.
const (
	slowStart = 1. / 16                // the share after a probe; below it, the breaker opens
	lastShare = 0.4                    // the last READY priority keeps at least this share
	decrease  = 0.7                    // what a cut leaves
	increase  = 0.02                   // growth in a second above the threshold
	window    = time.Second            // answers are judged together for at least so long
	enough    = 16                     // answers, before the next window begins
	stale     = 5 * time.Second        // a window without answers for so long begins with the next one
	filling   = 1. / 4                 // the fraction of its budget that an answer takes
	late      = 0.4                    // the same, of an answer that is late
	streamAge = 10 * time.Second       // a stream that is open for so long is an answer
	quiet     = 500 * time.Millisecond // silence before it means something
	trickle   = 200 * time.Millisecond // between calls to a silent priority
	trickleOf = 10                     // or this part of the silence, if that is more: deadlines may be long
	endless   = 2 * time.Second        // silence of calls without a deadline that opens the breaker
	gone      = time.Second            // connections that come back sooner are not cold
)

// Slow start reaches a share of 1 in this time.
const defaultRamp = 8 * time.Second

// Share is the share of one priority in one channel. The caller locks it. The parameter now of
// its methods is the time since any fixed moment.
type Share struct {
	fraction  float64 // of the calls; 0 while the breaker is open
	threshold float64 // where slow start ends
	fallen    float64 // the fraction after the last cut
	carried   float64 // the largest fraction since the last fall because of load
	last      bool    // no READY priority is below this one
	wanted    bool
	failing   bool // the last priority, whose breaker stays closed, has no good answers
	cause     Cause
	doubling  time.Duration

	epoch     uint32 // number of the last cut; only calls begun since then say something
	cutAt     time.Duration
	grownAt   time.Duration
	lastCall  time.Duration
	goodAt    time.Duration
	answerAt  time.Duration // when the last answer was counted
	recent    time.Duration // mean latency of good answers
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
	Ramp   time.Duration // in which slow start reaches a share of 1; 0 means 8 s, and servers with cold caches need more
	Uneven bool          // calls choose their endpoint, so one that is fuller than the others is not at fault
}

// New returns a share of 1.
func New(now time.Duration, c Config) *Share {
	s := &Share{fraction: 1, threshold: 1, doubling: cmp.Or(c.Ramp, defaultRamp) / 4, lastCall: now, answerAt: now, silence: silence{number: 1}, sampling: sampling{every: 1}}
	s.endpoints.uneven = c.Uneven
	s.renew(now)
	return s
}

// Cause is why a share fell the last time.
type Cause uint8

const (
	Nothing   Cause = iota
	Full            // too many answers were refused, expired or UNAVAILABLE
	Slow            // answers were late
	Hanging         // no answer within a whole deadline
	Broken          // errors in a row
	Returning       // its connections came back, and it may be cold
)

func (c Cause) String() string {
	return [...]string{"nothing", "full", "slow", "hanging", "broken", "returning"}[c]
}

// Fraction returns the share of the calls, and why it fell the last time.
func (s *Share) Fraction() (float64, Cause) { return s.fraction, s.cause }

// Tripped is true while the breaker is open: the priority takes only probes.
func (s *Share) Tripped() bool { return s.fraction == 0 }

// SetLast records whether no READY priority is below this one. A priority that becomes the last one
// closes its breaker. It takes what it carried before it fell, unless it fell because of load:
// calls that it does not take are refused.
func (s *Share) SetLast(now time.Duration, last bool) {
	if to := max(lastShare, s.carried); last && !s.last && s.fraction < to {
		s.fraction = to
		s.renew(now)
	}
	s.last, s.wanted, s.failing = last, s.wanted && last, s.failing && last
}

// Returned is called when the priority becomes READY again while a lower one is READY, after
// SetLast. absent is how long it had no connections; for a priority that is new, it is more than a
// second.
func (s *Share) Returned(now, absent time.Duration) {
	s.silence.answered()
	if absent >= gone {
		s.trip(now, Returning)
	}
}

// Look notes that streams have stayed open, and returns when the priority last gave a good answer:
// 0 if it never did. While the view says that all calls are taken and none is watched, we do not
// see all of them.
func (s *Share) Look(now time.Duration) (goodAt time.Duration) {
	if s.streams.answer(now) {
		s.succeeded(now)
		s.grow(now, streamAge)
	}
	return s.goodAt
}

func (s *Share) succeeded(now time.Duration) { s.failing, s.goodAt = false, now }

// Take is true if the priority takes a call that is offered to it. random is in [0, 1). The caller
// may find no connection and not begin the call: nothing is lost by that.
func (s *Share) Take(now time.Duration, random float64) bool {
	s.Look(now)
	if s.fraction == 0 {
		return s.breaker.isDue(now - s.lastCall)
	}
	if !s.last && s.silence.lasts(now, s.methods.usual) {
		if s.silence.endless && now-s.silence.since >= endless && s.trip(now, Hanging) {
			return false
		}
		return now-s.lastCall >= max(trickle, (now-s.silence.since)/trickleOf)
	}
	return random < s.weight()
}

// Probe is true if the priority takes a call that no priority takes, and that would be refused or
// wait.
func (s *Share) Probe(now time.Duration) bool {
	return s.fraction == 0 && now-s.lastCall >= time.Second
}

// While the priority is filling, the gradient takes some of the share away.
func (s *Share) weight() float64 {
	if s.pressure.above(filling) && (!s.last || s.fraction < 1) {
		return s.fraction * max(0, 1+filling-s.pressure.mean)
	}
	return s.fraction
}

// Call is a call that has begun and not ended.
type Call struct {
	began    time.Duration
	budget   time.Duration // 0 without a deadline
	method   *method       // without a deadline only
	endpoint *Endpoint
	stamp    Stamp
	wait     uint32 // the number of the silence that it counts in, or 0
	kind     kind
}

type kind uint8

const (
	untimed kind = iota
	timed
	stream
)

// Stamp is the moment at which a call began, compared with cuts and errors.
type Stamp struct{ epoch, row uint32 }

// Untimed returns a call of which only the beginning is known.
func Untimed(s Stamp) Call { return Call{stamp: s} }

// Begin is called for each timed call that the priority takes. budget is the time until its
// deadline, or 0 if it has none; only then is the method needed.
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

// View is what a picker may keep in atomics after each call of a method, so that most calls need
// no lock.
type View struct {
	// Free means that every call is taken, and needs no Take.
	Free bool
	// Every is how many calls there are for each that must be timed, a power of two. While the view
	// is not Free, all calls are timed.
	Every uint32
	// Watch means that an untimed call must call End even if it succeeds.
	Watch bool
	Stamp Stamp
}

func (s *Share) View() View {
	return View{Free: s.free(), Every: s.sampling.every, Watch: s.row.length > 0 || s.silence.noticed || s.failing, Stamp: s.stamp()}
}

func (s *Share) free() bool { return s.fraction == 1 && s.weight() == 1 && !s.silence.noticed }
