package channel_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
)

// callsDuringReconnect makes fifty calls while an endpoint reconnects. It returns the number of
// calls of each priority. The key "" counts waiting calls.
func (h *fleet) callsDuringReconnect(endpoint string) map[string]int {
	h.t.Helper()
	sc := h.cc.SubConn(endpoint)
	sc.Report(connectivity.Idle, nil)
	synctest.Wait()
	sc.Report(connectivity.Connecting, nil)
	synctest.Wait()
	counts := map[string]int{}
	for range 50 {
		result, err := h.cc.State().Picker.Pick(balancer.PickInfo{})
		switch {
		case err == nil:
			address, _ := h.end(result)
			counts[address[:1]]++
		case errors.Is(err, balancer.ErrNoSubConnAvailable):
			counts[""]++
		default:
			h.t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	sc.Report(connectivity.Ready, nil)
	synctest.Wait()
	sc.ReportHealth(connectivity.Ready, nil)
	synctest.Wait()
	return counts
}

// Priority a answers with errors, so b is in use. While b reconnects for 50 ms, only probes go to a,
// and all other calls wait.
func TestCallsWaitForReconnectingPriority(t *testing.T) {
	for _, sizes := range [][]int{{1, 1}, {1, 1, 1}} {
		inFleetWith(t, recommended, func(h *fleet) {
			h.failing["a0"] = true
			h.calls(30 * time.Second)
			for range 20 {
				counts := h.callsDuringReconnect("b0")
				if counts["a"] > 5 || counts[""]+counts["c"] < 45 {
					t.Fatalf("calls %v, want at most five probes in a, and the others waiting for b or in c", counts)
				}
				h.calls(5 * time.Second)
			}
		}, sizes...)
	}
}

// A client makes a call only every eleven seconds, which is longer than an interval of outlier
// detection. It nevertheless leaves a priority that answers with errors.
func TestOneCallEveryElevenSeconds(t *testing.T) {
	inFleet(t, func(h *fleet) {
		h.failing["a0"], h.failing["a1"] = true, true
		got := h.makeCalls(time.Hour, 11*time.Second, nil)
		t.Logf("%d of %d calls failed, %d moves", got.failed, got.calls, got.moves)
		if got.failed > 10+got.calls/10 || got.moves > 1 || got.priority != "b" {
			t.Errorf("%d of %d calls failed, %d moves; want at most five failures for each endpoint plus one call in ten, and one move", got.failed, got.calls, got.moves)
		}
	}, 2, 2)
}
