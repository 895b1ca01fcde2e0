package channel_test

import (
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
