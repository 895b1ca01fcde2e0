package channel_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/channel/topology"
)

func (h *fleet) failConnections(endpoints ...string) {
	for _, e := range endpoints {
		h.cc.SubConn(e).Report(connectivity.Connecting, nil)
		h.cc.SubConn(e).Report(connectivity.TransientFailure, errors.New("connection refused"))
	}
	h.settle()
}

func (h *fleet) wantCallsTo(what, priority string) {
	h.t.Helper()
	if counts, failed := h.calls(1e9); counts[priority] < 190 || failed > 0 {
		h.t.Errorf("%s: calls %v, %d failed; want them in %s", what, counts, failed, priority)
	}
}

func setOf(endpoints ...string) map[string]bool {
	set := map[string]bool{}
	for _, e := range endpoints {
		set[e] = true
	}
	return set
}

// If fewer endpoints are READY than MinReady requires, calls go to the next priority. They return
// when enough endpoints are READY again. No call fails or waits.
func TestPriorityFallsBelowMinReady(t *testing.T) {
	for name, settings := range map[string]topology.Settings{
		"alone":                  {MinReady: 0.6},
		"with outlier detection": {MinReady: 0.6, OutlierDetection: true},
	} {
		t.Run(name, func(t *testing.T) {
			inFleetWith(t, settings, func(h *fleet) {
				h.wantCallsTo("all are READY", "a")
				h.pending = setOf("a0", "a1", "a2")
				h.failConnections("a0", "a1")
				h.wantCallsTo("three of five are READY", "a")
				h.failConnections("a2")
				h.wantCallsTo("two of five are READY", "b")
				h.pending = nil
				h.settle()
				h.wantCallsTo("all are READY again", "a")
			}, 5, 5)
		})
	}
}

// A priority that connects for the first time is used when its first endpoint is READY. The other
// endpoints do not count as failed.
func TestConnectingPriorityIsNotBelowMinReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &fleet{t: t, pending: setOf("a1", "a2", "a3", "a4")}
		h.start(topology.Settings{MinReady: 0.6}, 5, 5)
		defer h.policy.Close()
		h.wantCallsTo("one of five is READY, the others connect", "a")
		if h.cc.SubConn("b0") != nil {
			t.Error("the lower priority is connected")
		}
		h.failConnections("a1")
		h.wantCallsTo("another one of five has failed", "b")
	})
}

func TestGrowingPriorityIsNotBelowMinReady(t *testing.T) {
	inFleetWith(t, topology.Settings{MinReady: 0.6}, func(h *fleet) {
		h.pending = setOf("a2", "a3", "a4", "a5", "a6")
		for i := 2; i < 7; i++ {
			address := resolver.Address{Addr: fmt.Sprintf("a%d", i)}
			h.targets[0].Endpoints = append(h.targets[0].Endpoints, resolver.Endpoint{Addresses: []resolver.Address{address}})
		}
		h.update(topology.Join(topology.Settings{MinReady: 0.6}, topology.Targets(h.targets)))
		h.wantCallsTo("two of seven are READY, the others connect", "a")
		h.failConnections("a2", "a3")
		h.wantCallsTo("two have failed", "b")
	}, 2, 2)
}

// An endpoint that reconnects after its server closed the connection does not count as failed.
func TestReconnectingEndpointIsNotFailed(t *testing.T) {
	inFleetWith(t, topology.Settings{MinReady: 0.6}, func(h *fleet) {
		h.calls(2e9) // a shorter connection counts as failed
		h.pending = setOf("a0")
		h.cc.SubConn("a0").Report(connectivity.Idle, nil)
		h.settle()
		h.wantCallsTo("one of two reconnects", "a")
		h.failConnections("a0")
		h.wantCallsTo("it cannot be reached", "b")
	}, 2, 2)
}

// A READY share of exactly MinReady is enough, even for fractions without an exact binary form.
func TestReadyShareOfExactlyMinReady(t *testing.T) {
	for _, test := range []struct {
		minReady     float64
		total, ready int
	}{{0.1, 10, 1}, {0.2, 5, 1}, {0.3, 10, 3}, {0.35, 20, 7}, {0.55, 20, 11}, {0.7, 10, 7}, {0.9, 10, 9}, {0.95, 20, 19}} {
		inFleetWith(t, topology.Settings{MinReady: test.minReady}, func(h *fleet) {
			var lost []string
			for i := test.ready; i < test.total; i++ {
				lost = append(lost, fmt.Sprint("a", i))
			}
			h.pending = setOf(lost...)
			h.failConnections(lost...)
			h.wantCallsTo(fmt.Sprintf("%d of %d are READY, MinReady is %v", test.ready, test.total, test.minReady), "a")
			h.pending = setOf(append(lost, "a0")...)
			h.failConnections("a0")
			h.wantCallsTo("one fewer is READY", "b")
		}, test.total, 5)
	}
}

// An endpoint reconnects after its ejection. It gets only a few trial calls until it has answered
// enough of them.
func TestUnprovenEndpointReconnects(t *testing.T) {
	inFleetWith(t, topology.Settings{MinReady: 0.6, OutlierDetection: true}, func(h *fleet) {
		h.failing["a1"] = true
		h.makeCalls(10*time.Second, 50*time.Millisecond, nil)
		for i := range 60 {
			if counts := h.callsDuringReconnect("a1"); counts["a"] > 5 {
				t.Fatalf("reconnect %d: calls %v, want them in b", i+1, counts)
			}
			h.makeCalls(5*time.Second, 50*time.Millisecond, nil)
		}
	}, 2, 2)
}
