package filewatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settling returns how long settle waits while an event comes every interval.
func settling(t *testing.T, interval time.Duration, concern bool) time.Duration {
	t.Helper()
	events, stop := make(chan fsnotify.Event), make(chan struct{})
	defer close(stop)
	go func() {
		for until := time.Now().Add(time.Hour); time.Now().Before(until); {
			select {
			case events <- fsnotify.Event{Name: "/a"}:
			case <-stop:
				return
			}
			select {
			case <-time.After(interval):
			case <-stop:
				return
			}
		}
	}()
	begin := time.Now()
	if !settle(nil, events, func(string) bool { return concern }) {
		t.Error("settle says that done is closed")
	}
	return time.Since(begin)
}

func TestSettleIsBounded(t *testing.T) {
	for _, test := range []struct {
		interval time.Duration
		concern  bool
		want     time.Duration
	}{
		{time.Millisecond, true, patience}, // never quiet
		{time.Millisecond, false, quiet},   // quiet, as far as it matters
		{time.Second, true, quiet},         // the first event is all
	} {
		synctest.Test(t, func(t *testing.T) {
			if got := settling(t, test.interval, test.concern); got != test.want {
				t.Errorf("an event every %v (of concern: %v): settled after %v, want %v", test.interval, test.concern, got, test.want)
			}
		})
	}
}
