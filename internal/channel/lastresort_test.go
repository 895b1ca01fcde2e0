package channel_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/channel/topology"
)

// These tests combine two faults that affect all priorities. They check which priority then gets
// the calls (docs/tiers.md). proof_test.go tests endpoints that have recovered and must first
// answer some calls.

// Priority a answers only with errors. Half of b is READY, which is less than MinReady. Calls go to
// b.
func TestHalfReadyPriorityIsPreferredToErrors(t *testing.T) {
	inFleetWith(t, topology.Settings{OutlierDetection: true, MinReady: 0.6}, func(h *fleet) {
		h.pending = setOf("b1")
		h.failing["a0"], h.failing["a1"] = true, true
		h.calls(5 * time.Second)
		h.failConnections("b1")
		got := h.makeCalls(10*time.Minute, 5*time.Millisecond, nil)
		t.Logf("%d of %d calls failed", got.failed, got.calls)
		if got.calls != 120000 || got.failed > 1200 || got.byPriority["a"] != got.failed {
			t.Errorf("%d of %d calls failed, want only the trial calls, at most 1200 of 120000", got.failed, got.calls)
		}
	}, 2, 2)
}

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

// Priority a answers with errors, so b is in use. While b reconnects for 50 ms, only trial calls go
// to a, and all other calls wait.
func TestCallsWaitForReconnectingPriority(t *testing.T) {
	for name, test := range map[string]struct {
		settings topology.Settings
		sizes    []int
	}{
		"two priorities":        {topology.Settings{OutlierDetection: true}, []int{1, 1}},
		"beside a warm standby": {topology.Settings{OutlierDetection: true, WarmStandby: 1}, []int{1, 1, 1}},
		"with fast failover":    {recommended, []int{1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			inFleetWith(t, test.settings, func(h *fleet) {
				h.failing["a0"] = true
				h.calls(30 * time.Second)
				for range 20 {
					counts := h.callsDuringReconnect("b0")
					if counts["a"] > 5 || counts[""] < 45 {
						t.Fatalf("calls %v, want at most five trial calls in a, and the others waiting for b", counts)
					}
					h.calls(5 * time.Second)
				}
			}, test.sizes...)
		})
	}
}

// The first priority fell below MinReady and then lost its last connection, so the second one is in
// use. Calls wait while the second one reconnects.
func TestCallsWaitAfterPriorityFellBelowMinReady(t *testing.T) {
	inFleetWith(t, topology.Settings{MinReady: 0.6}, func(h *fleet) {
		h.calls(2 * time.Second)
		h.pending = setOf("a0", "a1")
		h.failConnections("a1")
		h.wantCallsTo("half of a is READY", "b")
		h.cc.SubConn("a0").Report(connectivity.Idle, nil)
		synctest.Wait()
		if counts := h.callsDuringReconnect("b0"); counts[""] != 50 {
			t.Errorf("calls %v, want all to wait for b", counts)
		}
	}, 2, 1)
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
