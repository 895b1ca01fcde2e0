package sim

import (
	"math/rand/v2"
	"time"
)

// This file has what goes with the options that overflow replaces.

// The possible values of minReady and minReadyRecovery. The READY share of a priority never equals
// one of these values, so rounding does not matter.
var (
	minReadyValues = []float64{0.353, 0.553}
	recoveryValues = []float64{0, 0.797}
)

func (s *settings) chooseReplaced(r *rand.Rand) {
	if r.IntN(3) == 0 {
		s.failbackDelay = time.Duration(5+r.IntN(60)) * time.Second
		s.maxFailbackDelay = s.failbackDelay * time.Duration(1+r.IntN(4))
		s.failbackJitter = time.Duration(r.IntN(3)/2*20) * time.Second
	}
	if r.IntN(2) == 0 {
		s.minReady = minReadyValues[r.IntN(len(minReadyValues))]
		s.minReadyRecovery = max(s.minReady, recoveryValues[r.IntN(len(recoveryValues))])
	}
	s.fastFailover = r.IntN(2) == 0
}

// chooseOverflow sets overflow and unsets the options that it replaces.
func (s *settings) chooseOverflow() {
	s.overflow, s.fastFailover = true, false
	s.failbackDelay, s.maxFailbackDelay, s.failbackJitter = 0, 0, 0
	s.minReady, s.minReadyRecovery = 0, 0
}

// tokenBucket limits the trial calls to a failing priority. Calls and time add tokens. The bucket
// can hold several tokens, because concurrent calls may be trials.
type tokenBucket struct {
	n    float64
	last moment
}

const maxTokens = 3

func (t *tokenBucket) refill(now moment, perCall float64, interval time.Duration) {
	now = moment{latest(now.time, t.last.time), max(now.calls, t.last.calls)} // calls may not end in the order in which they began
	t.n += float64(now.calls-t.last.calls) * perCall
	if interval > 0 {
		t.n += float64(now.time.Sub(t.last.time)) / float64(interval)
	}
	t.n, t.last = min(t.n, maxTokens), now
}

// takeTrial reports whether a call to a failing priority may be a trial, and counts it as one. One
// trial is allowed for each hundred calls and for each interval of outlier detection, but not more
// than one for each ten calls.
func (s *priorityState) takeTrial(now moment) bool {
	s.callTokens.refill(now, 0.1, 0)
	s.intervalTokens.refill(now, 0.01, targetDetection.interval)
	if s.callTokens.n < 1 || s.intervalTokens.n < 1 {
		return false
	}
	s.callTokens.n--
	s.intervalTokens.n--
	return true
}
