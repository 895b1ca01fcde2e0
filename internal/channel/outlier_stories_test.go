package channel_test

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
)

type callCounts struct {
	calls, failed int
	byPriority    map[string]int
	moves         int    // how often most calls moved to another priority
	priority      string // the priority of most of the last ten calls
}

// makeCalls makes one call per period for the duration d. Before each call, it calls beforeCall
// with the elapsed time. It counts a move when the priority of most of the last ten calls changes.
func (h *fleet) makeCalls(d, period time.Duration, beforeCall func(elapsed time.Duration)) callCounts {
	h.t.Helper()
	got := callCounts{byPriority: map[string]int{}}
	begin, last := time.Now(), map[string]int{}
	for time.Since(begin) < d {
		if beforeCall != nil {
			beforeCall(time.Since(begin))
		}
		endpoint, failed := h.call()
		time.Sleep(period - 5*time.Millisecond)
		h.settle()
		got.calls++
		got.byPriority[endpoint[:1]]++
		last[endpoint[:1]]++
		if failed {
			got.failed++
		}
		if got.calls%10 > 0 {
			continue
		}
		for tier, n := range last {
			if n > 5 && tier != got.priority {
				if got.priority != "" {
					got.moves++
				}
				got.priority = tier
			}
		}
		clear(last)
	}
	return got
}

func (h *fleet) startCall() (endpoint string, done func(balancer.DoneInfo)) {
	h.t.Helper()
	result, err := h.cc.State().Picker.Pick(balancer.PickInfo{Ctx: context.Background(), FullMethodName: "/test/Stream"})
	if err != nil {
		h.t.Fatal(err)
	}
	return result.SubConn.(*lbtest.SubConn).Addresses[0].Addr, result.Done
}

func (h *fleet) resetConnections(running []func(balancer.DoneInfo), endpoints ...string) {
	for _, done := range running {
		done(balancer.DoneInfo{Err: status.Error(codes.Unavailable, "connection reset"), BytesSent: true})
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
// second priority, which keeps the calls: these ejections are hidden, and the next answer ends them.
func TestConnectionResetOfSecondPriority(t *testing.T) {
	inFleet(t, func(h *fleet) {
		h.failing["a0"], h.failing["a1"] = true, true
		h.calls(10 * time.Minute)
		var running []func(balancer.DoneInfo)
		for range 20 {
			if endpoint, done := h.startCall(); endpoint[:1] == "b" {
				running = append(running, done)
			} else {
				done(balancer.DoneInfo{})
			}
		}
		h.resetConnections(running, "b0", "b1")
		got := h.makeCalls(20*time.Second, 5*time.Millisecond, nil)
		t.Logf("%d of %d calls failed", got.failed, got.calls)
		if got.failed > 5 {
			t.Errorf("%d of %d calls failed, want at most a few probes of the first priority", got.failed, got.calls)
		}
	}, 2, 2)
}

// A connection reset ejects all endpoints of a priority. It gets streams again even if its old ones
// never end.
func TestStreamsReturnAfterReset(t *testing.T) {
	inFleet(t, func(h *fleet) {
		h.calls(5 * time.Second)
		var running []func(balancer.DoneInfo)
		for range 30 {
			_, done := h.startCall()
			running = append(running, done)
		}
		h.resetConnections(running, "a0", "a1", "a2")
		counts := map[string]int{}
		for second := range 120 {
			endpoint, _ := h.startCall()
			time.Sleep(time.Second)
			h.settle()
			if second >= 60 {
				counts[endpoint[:1]]++
			}
		}
		if counts["b"] > 0 {
			t.Errorf("a minute later new streams go to %v, want all in a", counts)
		}
	}, 3, 3)
}

func TestMostEndpointsReturnErrors(t *testing.T) {
	inFleetWith(t, recommended, func(h *fleet) {
		h.failing["a0"], h.failing["a1"], h.failing["a2"] = true, true, true
		got := h.makeCalls(30*time.Minute, 20*time.Millisecond, nil)
		t.Logf("%d of %d calls failed, %d moves, finally in %s", got.failed, got.calls, got.moves, got.priority)
		if got.moves > 0 || got.failed*50 > got.calls {
			t.Errorf("%d moves to %s, %d of %d calls failed; want none, and only failures that eject endpoints", got.moves, got.priority, got.failed, got.calls)
		}
		clear(h.failing)
		got = h.makeCalls(10*time.Minute, 20*time.Millisecond, nil)
		if got.moves > 0 || got.priority != "a" {
			t.Errorf("after the repair %d moves to %s, want none", got.moves, got.priority)
		}
	}, 4, 4)
}

// Fifty endpoints keep reconnecting and answer with errors. At most 3 % of the calls are lost to a
// client with one call a second, and 0.2 % with twenty calls a second.
func TestManyEndpointsReconnectAndReturnErrors(t *testing.T) {
	for _, test := range []struct {
		period time.Duration
		most   float64
	}{{time.Second, 0.03}, {50 * time.Millisecond, 0.002}} {
		inFleet(t, func(h *fleet) {
			for i := range 50 {
				h.failing["a"+strconv.Itoa(i)] = true
			}
			h.makeCalls(10*time.Second, 5*time.Millisecond, nil)
			next := 0
			got := h.makeCalls(20*time.Minute, test.period, func(elapsed time.Duration) {
				for ; time.Duration(next)*600*time.Millisecond < elapsed; next++ {
					h.reconnect("a" + strconv.Itoa(next%50))
				}
			})
			t.Logf("%v: %d of %d calls failed, %d moves", test.period, got.failed, got.calls, got.moves)
			if float64(got.failed) > test.most*float64(got.calls) {
				t.Errorf("%v: %d of %d calls failed, want at most %.1f %%", test.period, got.failed, got.calls, 100*test.most)
			}
		}, 50, 1)
	}
}

// A client makes one call a minute. It leaves a priority that fails after five calls, and then sends
// a probe every 51 calls. When the priority works again, the way back takes up to 51 calls until the
// next probe and, in the mean, 69 more: at a share of 1/16, sixteen calls are offered for each that the
// priority takes. That is an hour and a half, with a standard deviation of 26 minutes. Three hours are
// too few in one run of 400, and five in none of 100,000.
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
			h.makeCalls(5*time.Hour, time.Minute, nil)
			if got := h.makeCalls(time.Hour, time.Minute, nil); got.byPriority["a"] < 55 {
				t.Errorf("%d endpoints: five hours later, calls go to %v, want nearly all to a", endpoints, got.byPriority)
			}
		}, endpoints, 1)
	}
}

// Streams that began before a fault end during it. Their success does not end an ejection.
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
		if got.moves > 1 || got.priority != "b" || got.failed > 30 {
			t.Errorf("%d moves, the last to %s, want one to b; %d calls failed, want at most 30", got.moves, got.priority, got.failed)
		}
	}, 2, 2)
}

// One of two endpoints answers with errors, and a client makes one call a minute. Without our rules,
// the endpoint would get five calls after each ejection, and half of the calls would fail.
func TestOneOfTwoEndpointsAtOneCallPerMinute(t *testing.T) {
	inFleet(t, func(h *fleet) {
		h.failing["a0"] = true
		got := h.makeCalls(600*time.Minute, time.Minute, nil)
		t.Logf("%d of %d calls failed", got.failed, got.calls)
		if got.failed*100 > 20*got.calls {
			t.Errorf("%d of %d calls failed, want at most 20 %%", got.failed, got.calls)
		}
	}, 2)
}

func TestOneOfFiveEndpointsRecovers(t *testing.T) {
	inFleet(t, func(h *fleet) {
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
