package filewatch

import (
	"testing"
	"testing/synctest"
	"time"
)

func measureSettle(t *testing.T, interval time.Duration) time.Duration {
	t.Helper()
	wake, stop := make(chan struct{}), make(chan struct{})
	defer close(stop)
	go func() {
		for until := time.Now().Add(time.Hour); time.Now().Before(until); {
			select {
			case wake <- struct{}{}:
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
	if !settle(nil, wake) {
		t.Error("settle returned false")
	}
	return time.Since(begin)
}

func TestSettleIsBounded(t *testing.T) {
	for _, test := range []struct{ interval, want time.Duration }{
		{time.Millisecond, maxSettleTime},
		{time.Second, quietPeriod},
	} {
		synctest.Test(t, func(t *testing.T) {
			if got := measureSettle(t, test.interval); got != test.want {
				t.Errorf("an event every %v: settled after %v, want %v", test.interval, got, test.want)
			}
		})
	}
}
