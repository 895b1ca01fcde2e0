package channel_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// callDuringReconnect reports that an endpoint has lost its connection, and 50 ms later that it is
// READY again. It makes a call in between, and returns the endpoint of this call, or "" if the call
// waits.
func (h *fleet) callDuringReconnect(endpoint string) string {
	h.t.Helper()
	sc := h.cc.SubConn(endpoint)
	sc.Report(connectivity.Idle, nil)
	synctest.Wait()
	sc.Report(connectivity.Connecting, nil)
	synctest.Wait()
	result, err := h.cc.State().Picker.Pick(balancer.PickInfo{})
	time.Sleep(50 * time.Millisecond)
	sc.Report(connectivity.Ready, nil)
	synctest.Wait()
	sc.ReportHealth(connectivity.Ready, nil)
	synctest.Wait()
	switch {
	case err == nil:
		return result.SubConn.(*lbtest.SubConn).Addresses[0].Addr
	case !errors.Is(err, balancer.ErrNoSubConnAvailable):
		h.t.Fatal(err)
	}
	return ""
}

// The only connection of the first priority is replaced every eight seconds. Calls do not wait for
// the handshake: they go to the standby, and all return.
func TestStandbyTakesCallsDuringHandshake(t *testing.T) {
	inFleetWith(t, recommended, func(h *fleet) {
		for range 75 {
			if address := h.callDuringReconnect("a0"); address != "b0" {
				t.Fatalf("a call went to %q, want b0", address)
			}
			if counts, _ := h.calls(8 * time.Second); counts["b"] > 0 {
				t.Fatalf("calls %v, want all in a", counts)
			}
		}
	}, 1, 1)
}

// If a priority has lost both of its connections, calls go to the next priority, even if one of the
// two endpoints was ejected.
func TestTwoLostConnectionsCauseFailover(t *testing.T) {
	inFleetWith(t, recommended, func(h *fleet) {
		h.calls(2 * time.Second)
		h.failing["a1"] = true
		h.calls(time.Second) // ejects a1
		h.pending = setOf("a0", "a1")
		h.cc.SubConn("a1").Report(connectivity.Connecting, nil)
		h.settle()
		if address := h.callDuringReconnect("a0"); address != "b0" {
			t.Errorf("a call went to %q, want b0", address)
		}
	}, 2, 1)
}
