package channel_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

func (h *fleet) reconnect(endpoint string) {
	sc := h.cc.SubConn(endpoint)
	for _, state := range []connectivity.State{connectivity.Idle, connectivity.Connecting, connectivity.Ready} {
		sc.Report(state, nil)
		synctest.Wait()
	}
	sc.ReportHealth(connectivity.Ready, nil)
	synctest.Wait()
}

func (h *fleet) recordFailures() func() []string {
	var mu sync.Mutex
	var failures []string
	h.cc.OnUpdate(func(s balancer.State) {
		if s.ConnectivityState == connectivity.TransientFailure {
			_, err := s.Picker.Pick(balancer.PickInfo{})
			mu.Lock()
			failures = append(failures, err.Error())
			mu.Unlock()
		}
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return failures
	}
}

// reconnectWithoutFailures replaces the connection of a0 n times, each time at the given age. No
// call may fail, so the channel must not publish TRANSIENT_FAILURE.
func (h *fleet) reconnectWithoutFailures(failures func() []string, n int, age time.Duration) {
	h.t.Helper()
	for range n {
		h.reconnect("a0")
		h.calls(age)
	}
	if got := failures(); len(got) > 0 {
		h.t.Errorf("calls failed with %q", got)
	}
}

// There is only one priority, and its only endpoint is ejected. The priority keeps its calls, and
// no call fails when the connection is replaced.
func TestOnlyPriorityReconnects(t *testing.T) {
	inFleet(t, func(h *fleet) {
		h.failing["a0"] = true
		h.calls(time.Minute)
		h.reconnectWithoutFailures(h.recordFailures(), 20, 2*time.Second)
	}, 1)
}

// A priority that works again gets its calls back, even if none of its connections lasts for an
// interval of outlier detection.
func TestPriorityWithShortConnectionsRecovers(t *testing.T) {
	for _, age := range []time.Duration{15 * time.Second, 9 * time.Second, 3 * time.Second} {
		inFleet(t, func(h *fleet) {
			h.failing["a0"] = true
			h.calls(time.Minute)
			clear(h.failing)
			repaired := time.Now()
			for {
				h.reconnect("a0")
				counts, _ := h.calls(age)
				elapsed := time.Since(repaired)
				if counts["a"] > counts["b"] {
					return
				}
				if elapsed > 30*time.Second {
					t.Errorf("with connections of %v the calls have not returned after %v, want at most two intervals", age, elapsed)
					return
				}
			}
		}, 1, 1)
	}
}

// The only endpoint of the first priority is ejected, works again, and then has no connection for
// an hour. Half a minute after it has reconnected, the priority has nearly all its calls again.
func TestEjectedPriorityReconnectsAfterAnHour(t *testing.T) {
	inFleet(t, func(h *fleet) {
		h.failing["a0"] = true
		h.calls(15 * time.Second)
		clear(h.failing)
		h.cc.SubConn("a0").Report(connectivity.TransientFailure, errors.New("refused"))
		synctest.Wait()
		time.Sleep(time.Hour)
		h.reconnect("a0")
		h.calls(30 * time.Second)
		if counts, _ := h.calls(time.Second); counts["b"] > 10 {
			t.Errorf("calls %v, want nearly all in a", counts)
		}
	}, 1, 1)
}

// A host hangs, and keepalive closes its connection. The next priority gets the calls at once,
// whether the failed calls or the closed connection are reported first.
func TestKeepaliveFailureCausesFailover(t *testing.T) {
	for first, callsFirst := range map[string]bool{"the calls": true, "the connection": false} {
		inFleetWith(t, recommended, func(h *fleet) {
			var calls []func(balancer.DoneInfo)
			for range 10 {
				_, done := h.startCall()
				calls = append(calls, done)
			}
			sc := h.cc.SubConn("a0")
			closeConnection := func() {
				sc.Report(connectivity.Idle, nil)
				synctest.Wait()
				sc.Report(connectivity.Connecting, nil)
				synctest.Wait()
			}
			if !callsFirst {
				closeConnection()
			}
			for _, end := range calls {
				end(balancer.DoneInfo{Err: status.Error(codes.Unavailable, "keepalive ping failed"), BytesSent: true})
			}
			synctest.Wait()
			if callsFirst {
				closeConnection()
			}
			h.pending = setOf("a0")
			h.settle()
			if counts, _ := h.calls(time.Second); counts["b"] != 200 {
				t.Errorf("%s first: calls %v, want all at b", first, counts)
			}
		}, 1, 1)
	}
}
