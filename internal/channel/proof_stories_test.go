package channel_test

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/channel/topology"
)

// A client makes one call a minute. It leaves a priority that fails, and returns when the priority
// works again. Five calls to each endpoint fail, and one in eleven of the other calls.
func TestOneCallPerMinute(t *testing.T) {
	for _, test := range []struct{ endpoints, most int }{{1, 60}, {5, 79}} {
		inFleet(t, func(h *fleet) {
			for i := range test.endpoints {
				h.failing[string([]byte{'a', byte('0' + i)})] = true
			}
			got := h.makeCalls(606*time.Minute, time.Minute, nil)
			t.Logf("%d endpoints: %d of %d calls failed, %d moves", test.endpoints, got.failed, got.calls, got.moves)
			if got.failed > test.most || got.moves > 1 {
				t.Errorf("%d endpoints: %d of %d calls failed with %d moves, want at most %d, and one", test.endpoints, got.failed, got.calls, got.moves, test.most)
			}
			clear(h.failing)
			if got := h.makeCalls(2*time.Hour, time.Minute, nil); got.moves > 1 || got.priority != "a" {
				t.Errorf("%d endpoints: afterwards %d moves to %s, want one to a", test.endpoints, got.moves, got.priority)
			}
		}, test.endpoints, 1)
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
