package weightedtarget

import (
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// While another child is READY or CONNECTING, an IDLE child gets no calls, so the policy must make
// it connect. If all other children have failed, the IDLE child gets calls, which make it connect.
func TestIdleChildWithoutCallsConnects(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.update("a=1 b=1 c=1", "")
		b := h.builder.Get("b")
		for i, step := range []struct {
			child string
			state connectivity.State
			want  int
		}{
			{"b", connectivity.Idle, 1},
			{"b", connectivity.Connecting, 1},
			{"a", connectivity.TransientFailure, 1},
			{"c", connectivity.TransientFailure, 1},
			{"b", connectivity.Idle, 1},
			{"a", connectivity.Ready, 2},
			{"c", connectivity.Ready, 2},
			{"b", connectivity.Connecting, 2},
			{"b", connectivity.Ready, 2},
			{"b", connectivity.Idle, 3},
		} {
			h.report(step.child, step.state)
			if n := b.ExitIdles(); n != step.want {
				t.Errorf("step %d, %s is %v: ExitIdle was called %d times for b, want %d", i, step.child, step.state, n, step.want)
			}
		}
		h.update("a=1", `, "removedChildRetention": "60s"`)
		b.Report(connectivity.Idle, nil)
		synctest.Wait()
		if n := b.ExitIdles(); n != 3 {
			t.Errorf("ExitIdle was called %d times for b, which is no longer configured; want 3", n)
		}
	})
}

func TestUpdateConnectsIdleChild(t *testing.T) {
	for _, test := range []struct {
		state connectivity.State
		want  int
	}{{connectivity.TransientFailure, 0}, {connectivity.Connecting, 1}, {connectivity.Ready, 1}} {
		t.Run(test.state.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *harness) {
				h.update("a=1 b=1 c=1", "")
				h.report("c", connectivity.Ready)
				h.builder.OnUpdate = func(s *lbtest.Stub, _ balancer.ClientConnState) error {
					s.Report(map[string]connectivity.State{
						"a": connectivity.Idle, "b": test.state, "c": test.state,
					}[s.ID()], nil)
					return nil
				}
				h.update("a=1 b=1 c=1", "")
				if n := h.builder.Get("a").ExitIdles(); n != test.want {
					t.Errorf("ExitIdle was called %d times for a, want %d", n, test.want)
				}
			})
		})
	}
}
