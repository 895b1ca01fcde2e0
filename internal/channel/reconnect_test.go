package channel_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy"
)

// While no priority is READY, each endpoint is tried at least each two seconds, or half a second for
// each of the channel's endpoints up to 10 s. So all are connected soon after an outage of any length.
func TestBackoffsWhileNothingIsReady(t *testing.T) {
	for _, test := range []struct {
		target    string
		endpoints []string
		within    time.Duration
	}{
		{"failover:///tier:///a2,tier:///b2", append(addressNames("a", 2), addressNames("b", 2)...), 2 * time.Second},
		{"failover:///tier:///a10", addressNames("a", 10), 5 * time.Second},
		{"failover:///tier:///a40", addressNames("a", 40), 10 * time.Second},
	} {
		t.Run(test.target, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory(t)
				m.newChannel(test.target, understudy.Options{MaxConnectBackoff: 2 * time.Minute})
				m.setDown(true, test.endpoints...)
				time.Sleep(10 * time.Minute)
				last := test.endpoints[len(test.endpoints)-1]
				before := m.attempts(last)
				const length = 10 * time.Minute
				time.Sleep(length)
				if n := m.attempts(last) - before; n < int(length/test.within) || n > int(length/time.Second) {
					t.Errorf("an endpoint of %d was tried %d times in %v, want once in %v or more often, and not more than once a second", len(test.endpoints), n, length, test.within)
				}
				m.setDown(false, test.endpoints...)
				time.Sleep(test.within)
				synctest.Wait()
				if n := m.connected(test.endpoints...); n < min(2, len(test.endpoints)) {
					t.Errorf("%d of %d endpoints are connected after %v", n, len(test.endpoints), test.within)
				}
			})
		})
	}
}

// While a priority is READY, the endpoints of the others wait as gRPC says.
func TestBackoffsWhileAnotherPriorityIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		m.newChannel("failover:///tier:///a1,tier:///b1", understudy.Options{MaxConnectBackoff: 2 * time.Minute})
		m.setDown(true, "a0")
		time.Sleep(10 * time.Minute)
		before := m.attempts("a0")
		time.Sleep(time.Hour)
		if n := m.attempts("a0") - before; n < 25 || n > 40 {
			t.Errorf("the endpoint was tried %d times in an hour, want each two minutes", n)
		}
	})
}
