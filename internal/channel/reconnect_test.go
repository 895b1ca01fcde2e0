package channel_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy"
)

func TestFirstConnectionEndsOtherBackoffs(t *testing.T) {
	for target, endpoints := range map[string][]string{
		"failover:///tier:///a4":                                  addressNames("a", 4),
		"failover:///tier:///a1,tier:///b1,tier:///c1,tier:///d1": {"a0", "b0", "c0", "d0"},
	} {
		t.Run(target, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory(t)
				m.newChannel(target, understudy.Options{MaxConnectBackoff: 2 * time.Minute})
				m.setDown(true, endpoints...)
				time.Sleep(10 * time.Minute)
				m.setDown(false, endpoints...)
				m.await(endpoints...)
				time.Sleep(10 * time.Millisecond)
				synctest.Wait()
				if n := m.connected(endpoints...); n < len(endpoints) {
					t.Errorf("%d of %d endpoints are connected 10 ms after the first", n, len(endpoints))
				}
			})
		})
	}
}

// An endpoint loses its connection every 15 s and reconnects. The other endpoints are unreachable.
// A new connection of the first endpoint may end their backoffs, but not each time.
func TestFlappingEndpointCausesFewAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		m.newChannel("failover:///tier:///a4", understudy.Options{MaxConnectBackoff: 2 * time.Minute})
		m.setDown(true, addressNames("a", 4)...)
		time.Sleep(10 * time.Minute)
		before, begin := m.attempts("a3"), time.Now()
		for range 200 {
			m.setDown(false, "a0")
			m.await("a0")
			time.Sleep(2 * time.Second)
			m.setDown(true, "a0")
			time.Sleep(12 * time.Second)
		}
		n, minutes := m.attempts("a3")-before, time.Since(begin).Minutes()
		if float64(n) > 8*minutes {
			t.Errorf("a3 was dialled %d times in %.0f minutes, want at most eight times a minute", n, minutes)
		}
	})
}
