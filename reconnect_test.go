package understudy_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy"
)

func TestFirstConnectionEndsOtherBackoffs(t *testing.T) {
	for target, all := range map[string][]string{
		"failover:///tier:///a4":                                  addresses("a", 4),
		"failover:///tier:///a1,tier:///b1,tier:///c1,tier:///d1": {"a0", "b0", "c0", "d0"},
	} {
		t.Run(target, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory(t)
				m.with(target, understudy.Options{MaxConnectBackoff: 2 * time.Minute})
				m.set(true, all...)
				time.Sleep(10 * time.Minute)
				m.set(false, all...)
				m.await(all...)
				time.Sleep(10 * time.Millisecond)
				synctest.Wait()
				if n := m.connected(all...); n < len(all) {
					t.Errorf("%d of %d endpoints are connected 10 ms after the first", n, len(all))
				}
			})
		})
	}
}

// An endpoint loses its connection every 15 s and reconnects. The other endpoints are unreachable. A
// connection may end their backoff, but not every one of the first endpoint does.
func TestFlappingEndpointCausesFewAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		m.with("failover:///tier:///a4", understudy.Options{MaxConnectBackoff: 2 * time.Minute})
		m.set(true, addresses("a", 4)...)
		time.Sleep(10 * time.Minute)
		before, begin := m.attempts("a3"), time.Now()
		for range 200 {
			m.set(false, "a0")
			m.await("a0")
			time.Sleep(2 * time.Second)
			m.set(true, "a0")
			time.Sleep(12 * time.Second)
		}
		n, minutes := m.attempts("a3")-before, time.Since(begin).Minutes()
		if float64(n) > 8*minutes {
			t.Errorf("a3 was dialled %d times in %.0f minutes, want at most eight times a minute", n, minutes)
		}
	})
}
