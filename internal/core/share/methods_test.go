package share_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/understudy-lb/understudy/internal/core/share"
)

// "The table of methods is bounded (64) and used for calls without deadlines only."
func TestMethodsAreBounded(t *testing.T) {
	now, s := time.Hour, share.New(time.Hour, share.Config{})
	call := func(method string, budget time.Duration) {
		s.End(now+10*time.Millisecond, s.Begin(now, budget, method, nil), share.Good)
		now += 20 * time.Millisecond
	}
	for i := range 100 {
		call(fmt.Sprint("/with-deadline-", i), time.Second)
	}
	if n := s.Methods(); n != 0 {
		t.Errorf("%d methods of calls with deadlines are kept, want 0", n)
	}
	for i := range 64 {
		call(fmt.Sprint("/", i), 0)
	}
	silentAfter := func(method string) bool {
		for range 8 { // until then, it counts as a stream
			call(method, 0)
		}
		for range 6 {
			s.Begin(now, 0, method, nil)
		}
		s.Take(now+time.Second, 0)
		silent := !s.View().Free
		s.End(now+time.Second, s.Begin(now+time.Second, 0, "/0", nil), share.Good)
		now += time.Second
		return silent
	}
	if !silentAfter("/1") {
		t.Error("calls of a known method do not count as silence")
	}
	if silentAfter("/new") {
		t.Error("calls of the 65th method count as silence, want it to be unknown")
	}
	if n := s.Methods(); n != 64 {
		t.Errorf("%d methods are kept, want 64", n)
	}
	now += time.Minute
	call("/0", 0)
	if !silentAfter("/new") || s.Methods() != 64 {
		t.Errorf("a minute later a new method has not replaced an old one; %d are kept", s.Methods())
	}
}

// A minute after their calls, one of 64 methods makes room: not one that was called since, and not
// the last by name.
func TestFirstMethodIsForgotten(t *testing.T) {
	now, s := time.Hour, share.New(time.Hour, share.Config{})
	for i := range 8 * 64 {
		s.End(now, s.Begin(now, 0, fmt.Sprint("/", i%64), nil), share.Good)
	}
	now += time.Minute
	for _, method := range []string{"/0", "/new", "/9", "/9", "/9", "/0", "/0"} {
		s.Begin(now, 0, method, nil)
	}
	if s.Take(now+time.Second, 0); s.View().Free {
		t.Error("calls of the first or the last method do not count as silence")
	}
}

// If several methods were last called at the same time, the first one by name is forgotten. Of a
// method that we don't know, calls may be streams, so they're no silence.
func TestMethodThatIsForgotten(t *testing.T) {
	for method, free := range map[string]bool{"/0": true, "/1": false} {
		now, s := time.Hour, share.New(time.Hour, share.Config{})
		for i := range 8 * 64 {
			s.End(now, s.Begin(now, 0, fmt.Sprint("/", i%64), nil), share.Good)
		}
		now += time.Minute
		s.Begin(now, 0, "/new", nil)
		for range 6 {
			s.Begin(now, 0, method, nil)
		}
		if s.Take(now+time.Second, 0); s.View().Free != free {
			t.Errorf("calls of %s are silence: %v, want %v", method, free, !free)
		}
	}
}

// Streams of one method without deadlines, ten a second, some short and most of minutes: the short
// ones end first, and the long ones are not late.
func TestStreamsOfVariousLengthsAreNotLate(t *testing.T) {
	for _, short := range []int{2, 3, 10, 100} {
		now, s := time.Hour, share.New(time.Hour, share.Config{})
		ends := map[time.Duration][]share.Call{}
		taken, n := 0, 0
		for ; n < 10*900; n++ {
			now += 100 * time.Millisecond
			for _, call := range ends[now] {
				s.End(now, call, share.Good)
			}
			if !s.Take(now, 0.999) {
				continue
			}
			taken++
			length := 3*time.Minute + time.Duration(n%7)*time.Second
			if n%short == 0 {
				length = 200 * time.Millisecond
			}
			ends[now+length] = append(ends[now+length], s.Begin(now, 0, "/watch", nil))
		}
		if taken < n*99/100 {
			t.Errorf("one of %d streams is short: %d of %d are taken", short, taken, n)
		}
	}
}
