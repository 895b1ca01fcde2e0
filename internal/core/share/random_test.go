package share_test

import (
	"flag"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/understudy-lb/understudy/internal/core/share"
)

func TestMain(m *testing.M) {
	flag.Set("rapid.checks", "300")
	os.Exit(m.Run())
}

// tripped returns a share whose breaker has just opened, after so many rows of errors.
func tripped(now time.Duration) *share.Share {
	s := share.New(now, share.Config{})
	fail(s, now, 10)
	return s
}

func fail(s *share.Share, now time.Duration, n int) {
	for range n {
		s.End(now, s.Begin(now, time.Second, "", nil), share.Failed)
	}
}

// The back-off, from its sentence: a probe is due when the back-off has passed since the last one
// and ten calls for each second of it, at most 50, have gone elsewhere. It doubles up to a minute.
func TestBackOffOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, s := time.Hour, tripped(time.Hour)
		backOff, last, elsewhere := 1.0, now, 0
		for range rapid.IntRange(0, 400).Draw(t, "calls") {
			now += time.Duration(rapid.IntRange(0, 4000).Draw(t, "ms")) * time.Millisecond
			elsewhere++
			due := (now-last).Seconds() >= backOff && elsewhere >= int(min(50, 10*backOff))
			if got := s.Take(now, 0); got != due {
				t.Fatalf("after %v and %d calls elsewhere with a back-off of %v s: a probe is %v, want %v", now-last, elsewhere, backOff, got, due)
			}
			if due {
				r := rapid.SampledFrom([]share.Result{share.Failed, share.Refused, share.Unavailable, share.Lost}).Draw(t, "result")
				s.End(now, s.Begin(now, time.Second, "", nil), r)
				backOff, last, elsewhere = min(60, 2*backOff), now, 0
			}
		}
	})
}

// The ramp, from its sentence: doubles each quarter of the ramp up to the threshold, then 0.02 a
// second. Answers come at random times, and never more than a second apart.
func TestRampOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ramp := time.Duration(rapid.IntRange(2, 60).Draw(t, "ramp")) * time.Second
		now := time.Hour
		s := share.New(now, share.Config{Ramp: ramp})
		fail(s, now, 10)
		now += time.Second
		s.End(now, s.Begin(now, time.Second, "", nil), share.Good)
		want, quarter := 1./16, ramp.Seconds()/4
		for at, step := 0, 0; at < 80_000; {
			step = rapid.IntRange(1, 1000).Draw(t, "ms")
			at += step
			now += time.Duration(step) * time.Millisecond
			s.End(now, s.Begin(now, time.Second, "", nil), share.Good)
			if at < 1000 {
				continue // nothing grows for a second after a change; then this second counts
			}
			if at-step < 1000 {
				step = 1000
			}
			if want < 0.7 {
				want = min(0.7, want*math.Exp2(float64(step)/1000/quarter))
			} else {
				want = min(1, want+0.02*float64(step)/1000)
			}
			if got, _ := s.Fraction(); math.Abs(got-want) > 1e-6 {
				t.Fatalf("%v ms after the probe the share is %v, want %v", at, got, want)
			}
		}
	})
}

// The row of errors, from its sentence: the results of all calls in the order of their ends. A
// result counts if its call began after the end of the row's first error.
func TestRowOracle(t *testing.T) {
	type begun struct {
		call  share.Call
		order int
	}
	rapid.Check(t, func(t *rapid.T) {
		now, s := time.Hour, share.New(time.Hour, share.Config{})
		var open []begun
		order, row, first, since, want := 0, 0, 0, now, false
		for range rapid.IntRange(1, 300).Draw(t, "events") {
			now += time.Duration(rapid.IntRange(1, 200).Draw(t, "ms")) * time.Millisecond
			order++
			if rapid.Bool().Draw(t, "begin") || len(open) == 0 {
				c := share.Untimed(s.View().Stamp, nil)
				open = append(open, begun{c, order})
				continue
			}
			i := rapid.IntRange(0, len(open)-1).Draw(t, "call")
			c := open[i]
			open = slices.Delete(open, i, i+1)
			r := rapid.SampledFrom([]share.Result{share.Failed, share.Failed, share.Failed, share.Failed, share.Unavailable, share.Lost, share.Good, share.Refused, share.Expired, share.Cancelled}).Draw(t, "result")
			s.End(now, c.call, r)
			switch {
			case r == share.Expired || r == share.Cancelled:
			case r == share.Good || r == share.Refused:
				if c.order > first {
					row = 0
				}
			case row == 0:
				row, first, since = 1, order, now
			case c.order > first:
				row++
				want = row >= 10 || row >= 5 && now-since >= time.Second
			}
			if got := s.Tripped(); got != want {
				t.Fatalf("after a row of %d in %v the breaker is open: %v", row, now-since, got)
			}
			if want {
				return
			}
		}
	})
}

// Lost calls, from the sentence: one counts like UNAVAILABLE if it began after the first loss of a
// group, which lasts ten seconds, or of the group before it if there's been no good answer since. It
// counts like an error otherwise.
func TestLostOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := rapid.SampledFrom([]time.Duration{time.Millisecond, time.Hour}).Draw(t, "start")
		s, like := share.New(now, share.Config{}), share.New(now, share.Config{})
		type begun struct {
			call, alike share.Call
			at          time.Duration
		}
		var open []begun
		var losses []time.Duration
		var goodAt time.Duration
		for range rapid.IntRange(1, 300).Draw(t, "events") {
			now += time.Duration(rapid.IntRange(0, 400).Draw(t, "ms")) * time.Millisecond
			if rapid.Bool().Draw(t, "begin") || len(open) == 0 {
				open = append(open, begun{s.Begin(now, time.Minute, "", nil), like.Begin(now, time.Minute, "", nil), now})
				continue
			}
			c, r := open[0], rapid.SampledFrom([]share.Result{share.Good, share.Good, share.Good, share.Lost, share.Unavailable}).Draw(t, "result")
			open = open[1:]
			s.End(now, c.call, r)
			if r == share.Lost {
				first := time.Duration(math.MaxInt64)
				for i, at := range losses {
					if i == 0 || at > first+10*time.Second {
						first = at
					}
				}
				losses = append(losses, now)
				if r = share.Failed; c.at > first && (now <= first+10*time.Second || goodAt < first) {
					r = share.Unavailable
				}
			}
			like.End(now, c.alike, r)
			if r == share.Good {
				goodAt = now
			}
			got, _ := s.Fraction()
			if want, _ := like.Fraction(); got != want {
				t.Fatalf("after %v and a call of %v: the share is %v, want %v", r, now-c.at, got, want)
			}
		}
	})
}

// Which endpoints are failing, from the sentence: a walk over all that have answered in the last ten
// seconds.
func TestEndpointsOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, s := time.Hour, share.New(time.Hour, share.Config{})
		endpoints := make([]share.Endpoint, 6)
		var last [6]answered
		var answers []int // the endpoints of all answers; -1 for forgotten ones
		often := rapid.SliceOfN(rapid.IntRange(0, 5), 10, 10).Draw(t, "often")
		if rapid.Bool().Draw(t, "one gets most") {
			often = []int{0, 0, 0, 0, 0, 0, 0, 0, 1, 2}
		}
		for range 20 {
			c := s.Begin(now, time.Second, "", nil)
			s.End(now+time.Millisecond, c, share.Good) // the usual latency
		}
		for range rapid.IntRange(1, 300).Draw(t, "answers") {
			now += time.Duration(rapid.IntRange(2000, 6000).Draw(t, "ms")) * time.Millisecond
			s.End(now, s.Begin(now-time.Millisecond, time.Second, "", nil), share.Good) // late answers must not become usual
			i, isLate := rapid.SampledFrom(often).Draw(t, "endpoint"), rapid.Bool().Draw(t, "late")
			took := time.Millisecond
			if isLate {
				took = 900 * time.Millisecond
			}
			before := last[i]
			known := before.at > 0 && now-before.at <= remembers(last[:], before, now)
			last[i] = answered{now, []bool{isLate}}
			if known {
				last[i].late = append(before.late, isLate)
			} else {
				for j, of := range answers {
					if of == i {
						answers[j] = -1
					}
				}
			}
			answers = append(answers, i)
			total, failing := 0, 0
			for _, a := range last {
				if a.at > 0 && now-a.at <= 10*time.Second {
					total++
					if a.fails() {
						failing++
					}
				}
			}
			want := isLate && before.fails() && known && total > 1 && 2*failing <= total && !getsMost(answers, i)
			if got := s.End(now, s.Begin(now-took, time.Second, "", &endpoints[i]), share.Good) == share.Late; got != want {
				t.Fatalf("an answer of endpoint %d, late %v: its own fault is %v, want %v", i, isLate, got, want)
			}
		}
	})
}

type answered struct {
	at   time.Duration
	late []bool
}

// fails is true if the mean of the answers, each counting for 7/8 of the next one, is an eighth.
func (a answered) fails() bool {
	mean, weight := 0., 1./8
	for _, late := range slices.Backward(a.late) {
		if late {
			mean += weight
		}
		weight *= 7. / 8
	}
	return mean >= 1./8
}

// getsMost is true if more than two thirds of the answers are the endpoint's, each counting for
// 63/64 of the next one. If they are few, it's two thirds of half of their largest possible sum.
func getsMost(answers []int, endpoint int) bool {
	own, all, weight := 0., 0., 1.
	for _, of := range slices.Backward(answers) {
		if all += weight; of == endpoint {
			own += weight
		}
		weight *= 63. / 64
	}
	return own > 2./3*max(all, 32)
}

// remembers returns how long an endpoint's last answer counts: without end, unless another answer
// has come more than ten seconds later and made it forgotten.
func remembers(all []answered, before answered, now time.Duration) time.Duration {
	for _, a := range all {
		if a.at > before.at+10*time.Second && a.at < now {
			return 0
		}
	}
	return math.MaxInt64
}

// On random events, these hold: the share is 0 or at least 1/16, and at most 1; the last one has at
// least 0.4; a free view is a share of 1; no more calls than those of a small share are taken.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, s := time.Hour, share.New(time.Hour, share.Config{})
		var open []share.Call
		last := false
		for range rapid.IntRange(1, 300).Draw(t, "events") {
			now += time.Duration(rapid.IntRange(0, 800).Draw(t, "ms")) * time.Millisecond
			switch n := rapid.IntRange(0, 20).Draw(t, "event"); {
			case n == 0:
				last = rapid.Bool().Draw(t, "last")
				s.SetLast(now, last)
			case n == 1 && !last:
				s.Returned(now, time.Duration(rapid.IntRange(0, 3).Draw(t, "absent"))*time.Second)
			case n < 12 || len(open) == 0:
				if s.Take(now, rapid.Float64Range(0, 0.999).Draw(t, "random")) || s.Probe(now) {
					budget := rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(t, "budget")
					open = append(open, s.Begin(now, budget, "/m", nil))
				}
			default:
				r := share.Result(rapid.IntRange(0, int(share.Cancelled)).Draw(t, "result"))
				s.End(now, open[0], r)
				open = open[1:]
			}
			taken := s.Take(now, 0.9999999) // notices silence
			f, cause := s.Fraction()
			if f != 0 && f < 1./16 || f > 1 || last && f < 0.4 || math.IsNaN(f) {
				t.Fatalf("the share is %v, last %v", f, last)
			}
			if f < 1 && cause == share.Nothing {
				t.Fatalf("the share is %v without a cause", f)
			}
			if s.View().Free && (f < 1 || !taken) {
				t.Fatalf("the view is free at %v", f)
			}
		}
	})
}
