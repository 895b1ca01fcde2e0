package channel_test

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/channel/topology"
)

// A client makes one call a minute. It leaves a priority that fails after five calls, and then sends
// a probe every 51 calls. When the priority works again, it has all calls after three hours.
func TestOneCallPerMinute(t *testing.T) {
	for _, endpoints := range []int{1, 5} {
		inFleet(t, func(h *fleet) {
			for i := range endpoints {
				h.failing[string([]byte{'a', byte('0' + i)})] = true
			}
			got := h.makeCalls(606*time.Minute, time.Minute, nil)
			t.Logf("%d endpoints: %d of %d calls failed", endpoints, got.failed, got.calls)
			if got.failed > 25 {
				t.Errorf("%d endpoints: %d of %d calls failed, want at most 25", endpoints, got.failed, got.calls)
			}
			clear(h.failing)
			h.makeCalls(3*time.Hour, time.Minute, nil)
			if got := h.makeCalls(time.Hour, time.Minute, nil); got.byPriority["a"] < 55 {
				t.Errorf("%d endpoints: three hours later, calls go to %v, want nearly all to a", endpoints, got.byPriority)
			}
		}, endpoints, 1)
	}
}

// Streams that began before a fault end during it. Their success does not count as a recovery.
func TestStreamsFromBeforeFault(t *testing.T) {
	inFleet(t, func(h *fleet) {
		var dones []func(balancer.DoneInfo)
		for range 600 {
			_, done := h.startCall()
			dones = append(dones, done)
		}
		h.failing["a0"], h.failing["a1"] = true, true
		got := h.makeCalls(10*time.Minute, time.Second, func(elapsed time.Duration) {
			for 600-len(dones) < int(elapsed/time.Second) {
				dones[0](balancer.DoneInfo{BytesSent: true, BytesReceived: true})
				dones = dones[1:]
			}
		})
		t.Logf("%d of %d calls failed, %d moves", got.failed, got.calls, got.moves)
		if got.moves > 1 || got.priority != "b" {
			t.Errorf("%d moves, the last to %s, want one to b", got.moves, got.priority)
		}
	}, 2, 2)
}

// While the only endpoint that is not ejected reconnects, calls go to the next priority and do not
// wait.
func TestOtherEndpointReconnectsDuringEjection(t *testing.T) {
	inFleet(t, func(h *fleet) {
		h.failing["a0"] = true
		next, waiting := 20*time.Second, 0
		got := h.makeCalls(time.Hour, 50*time.Millisecond, func(elapsed time.Duration) {
			if elapsed < next {
				return
			}
			next += 20 * time.Second
			h.cc.SubConn("a1").Report(connectivity.Idle, nil)
			synctest.Wait()
			if result, err := h.cc.State().Picker.Pick(balancer.PickInfo{}); err == nil {
				h.end(result)
			} else {
				waiting++
			}
			h.reconnect("a1")
		})
		t.Logf("%d of %d calls failed, %d moves, %v", got.failed, got.calls, got.moves, got.byPriority)
		if got.moves > 0 || got.byPriority["b"] > 0 || got.failed > 100 || waiting > 0 {
			t.Errorf("%d moves, calls %v, %d failed and %d waited", got.moves, got.byPriority, got.failed, waiting)
		}
	}, 2, 2)
}

func TestOneOfFiveEndpointsRecovers(t *testing.T) {
	inFleetWith(t, topology.Settings{OutlierDetection: true}, func(h *fleet) {
		for _, e := range []string{"a0", "a1", "a2", "a3", "a4"} {
			h.failing[e] = true
		}
		h.makeCalls(time.Minute, 10*time.Millisecond, nil)
		delete(h.failing, "a3")
		got := h.makeCalls(10*time.Minute, 10*time.Millisecond, nil)
		t.Logf("%d of %d calls failed, %d moves", got.failed, got.calls, got.moves)
		if got.failed*100 > 15*got.calls {
			t.Errorf("%d of %d calls failed, want at most 15 %%", got.failed, got.calls)
		}
	}, 5)
}
