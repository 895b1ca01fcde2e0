package outlierdetection

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/testing/outlierscenario"
)

// reconnectTwice ends two connections of an endpoint. The second one is short-lived, so pick_first
// counts the calls on the third.
func (h *tree) reconnectTwice(endpoint string) {
	for range 2 {
		for _, state := range []connectivity.State{connectivity.Idle, connectivity.Connecting, connectivity.Ready} {
			h.cc.SubConn(endpoint).Report(state, nil)
			synctest.Wait()
		}
		h.cc.SubConn(endpoint).ReportHealth(connectivity.Ready, nil)
		synctest.Wait()
	}
}

func TestFailingEndpointWithShortConnectionIsEjected(t *testing.T) {
	inTree(t, "understudy_weighted_round_robin", func(h *tree) {
		h.update(consecutiveConfig(), endpointsOf("a", "b")...)
		time.Sleep(time.Second)
		h.reconnectTwice("a")
		h.want(h.calls(10, "a"), "map[a:5 b:5]")
		h.want(h.calls(10, "a"), "map[b:10]")
		time.Sleep(40 * time.Second)
		h.reconnectTwice("a")
		h.want(h.calls(10, ""), "map[a:5 b:5]")
	})
}

// Calls are counted only until the first response. After that, a pick costs as little as before.
func TestResponseEndsCountingOfCalls(t *testing.T) {
	inTree(t, "understudy_weighted_round_robin", func(h *tree) {
		h.update(outlierscenario.Default(), endpointsOf("a", "b")...)
		time.Sleep(time.Second)
		counted := func() (n int) {
			var done []func(balancer.DoneInfo)
			for range 10 {
				result, err := h.cc.State().Picker.Pick(balancer.PickInfo{})
				if err != nil {
					t.Fatal(err)
				}
				if result.Done != nil {
					done = append(done, result.Done)
				}
			}
			for _, end := range done {
				end(balancer.DoneInfo{BytesReceived: true})
			}
			synctest.Wait()
			return len(done)
		}
		for i, want := range []int{0, 5, 0} {
			if got := counted(); got != want {
				t.Errorf("round %d: %d of 10 picks have a Done, want %d", i, got, want)
			}
			if i == 0 {
				h.reconnectTwice("a")
			}
		}
	})
}
