package share

import "time"

const (
	timedRate = 100 // calls per second
	mostEvery = 256
)

// sampling decides which calls we time. Up to 100 calls a second, that's every call. Above that,
// it's every second one, every fourth, and so on.
type sampling struct {
	every uint32
	since time.Duration
	calls uint32
	timed uint32
}

// count counts a timed call. While the view is free, it also accounts for those that weren't timed.
func (s *sampling) count(now time.Duration, free bool) {
	s.timed++
	if s.calls++; free {
		s.calls += s.every - 1
	}
	elapsed := now - s.since
	if elapsed < time.Second && s.timed < 2*timedRate {
		return
	}
	rate := float64(s.calls) / max(elapsed, time.Second).Seconds()
	every := uint32(1)
	for every < mostEvery && rate > timedRate*float64(every) {
		every *= 2
	}
	*s = sampling{every: every, since: now}
}
