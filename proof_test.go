package understudy_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/internal/topology"
)

type lived struct {
	calls, failed int
	in            map[string]int
	moves         int    // how often most calls moved to another priority
	tier          string // the priority of most of the last ten calls
}

// live makes one call per period for the duration d. Before each call, it calls happens with the
// elapsed time. It counts a move when the priority of most of the last ten calls changes.
func (h *fleet) live(d, period time.Duration, happens func(at time.Duration)) lived {
	h.t.Helper()
	got := lived{in: map[string]int{}}
	begin, last := time.Now(), map[string]int{}
	for time.Since(begin) < d {
		if happens != nil {
			happens(time.Since(begin))
		}
		endpoint, failed := h.call()
		time.Sleep(period - 5*time.Millisecond)
		h.settle()
		got.calls++
		got.in[endpoint[:1]]++
		last[endpoint[:1]]++
		if failed {
			got.failed++
		}
		if got.calls%10 > 0 {
			continue
		}
		for tier, n := range last {
			if n > 5 && tier != got.tier {
				if got.tier != "" {
					got.moves++
				}
				got.tier = tier
			}
		}
		clear(last)
	}
	return got
}

func (h *fleet) begin() (endpoint string, end func(balancer.DoneInfo)) {
	h.t.Helper()
	result, err := h.cc.State().Picker.Pick(balancer.PickInfo{Ctx: context.Background()})
	if err != nil {
		h.t.Fatal(err)
	}
	return result.SubConn.(*lbtest.SubConn).Addresses[0].Addr, result.Done
}

func (h *fleet) reset(under []func(balancer.DoneInfo), endpoints ...string) {
	for _, end := range under {
		end(balancer.DoneInfo{Err: status.Error(codes.Unavailable, "connection reset"), BytesSent: true})
	}
	for _, e := range endpoints {
		h.cc.SubConn(e).Report(connectivity.Idle, nil)
	}
	synctest.Wait()
	for _, e := range endpoints {
		h.reconnect(e)
	}
}

// The first priority answers with errors. A connection reset then ejects the endpoints of the
// second priority, which keeps the calls.
func TestConnectionResetOfSecondPriority(t *testing.T) {
	inFleet(t, func(h *fleet) {
		h.bad["a0"], h.bad["a1"] = true, true
		h.calls(10 * time.Minute)
		var under []func(balancer.DoneInfo)
		for range 20 {
			if endpoint, end := h.begin(); endpoint[:1] == "b" {
				under = append(under, end)
			} else {
				end(balancer.DoneInfo{})
			}
		}
		h.reset(under, "b0", "b1")
		got := h.live(20*time.Second, 5*time.Millisecond, nil)
		t.Logf("%d of %d calls failed", got.failed, got.calls)
		if got.failed > 41 {
			t.Errorf("%d of %d calls failed, want only the trial calls, one in a hundred", got.failed, got.calls)
		}
	}, 2, 2)
}

// A priority gets streams again even if its old streams never end. New streams go to it one
// interval after its ejection ends.
func TestStreamsReturnAfterReset(t *testing.T) {
	for name, settings := range map[string]topology.Settings{
		"alone":         {OutlierDetection: true},
		"with minReady": {OutlierDetection: true, MinReady: 0.6},
	} {
		t.Run(name, func(t *testing.T) {
			inFleetWith(t, settings, func(h *fleet) {
				h.calls(5 * time.Second)
				var under []func(balancer.DoneInfo)
				for range 30 {
					_, end := h.begin()
					under = append(under, end)
				}
				h.reset(under, "a0", "a1", "a2")
				in := map[string]int{}
				for at := range 120 {
					endpoint, _ := h.begin()
					time.Sleep(time.Second)
					h.settle()
					if at >= 60 {
						in[endpoint[:1]]++
					}
				}
				if in["b"] > 0 {
					t.Errorf("a minute later new streams go to %v, want all in a", in)
				}
			}, 3, 3)
		})
	}
}

func TestMostEndpointsReturnErrors(t *testing.T) {
	inFleetWith(t, topology.Settings{OutlierDetection: true, MinReady: 0.5}, func(h *fleet) {
		h.bad["a0"], h.bad["a1"], h.bad["a2"] = true, true, true
		got := h.live(30*time.Minute, 20*time.Millisecond, nil)
		t.Logf("%d of %d calls failed, %d moves, finally in %s", got.failed, got.calls, got.moves, got.tier)
		if got.moves > 1 || got.tier != "b" || got.failed*50 > got.calls {
			t.Errorf("%d moves to %s, %d of %d calls failed; want one move, to b, and only failed trial calls", got.moves, got.tier, got.failed, got.calls)
		}
		clear(h.bad)
		got = h.live(10*time.Minute, 20*time.Millisecond, nil)
		if got.moves != 1 || got.tier != "a" {
			t.Errorf("after the repair %d moves to %s, want one to a", got.moves, got.tier)
		}
	}, 4, 4)
}

// Fifty endpoints keep reconnecting and answer with errors. Trial calls to them are a tenth of the
// calls of a client with one call a second, and a hundredth with twenty calls a second.
func TestTrialsOfManyEndpoints(t *testing.T) {
	for _, test := range []struct {
		period time.Duration
		most   float64
	}{{time.Second, 0.11}, {50 * time.Millisecond, 0.02}} {
		inFleet(t, func(h *fleet) {
			for i := range 50 {
				h.bad["a"+strconv.Itoa(i)] = true
			}
			h.live(10*time.Second, 5*time.Millisecond, nil)
			next := 0
			got := h.live(20*time.Minute, test.period, func(at time.Duration) {
				for ; time.Duration(next)*600*time.Millisecond < at; next++ {
					h.reconnect("a" + strconv.Itoa(next%50))
				}
			})
			t.Logf("%v: %d of %d calls failed, %d moves", test.period, got.failed, got.calls, got.moves)
			if float64(got.failed) > test.most*float64(got.calls) {
				t.Errorf("%v: %d of %d calls failed, want at most %.0f %%", test.period, got.failed, got.calls, 100*test.most)
			}
		}, 50, 1)
	}
}
