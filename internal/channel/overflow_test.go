package channel_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy"
)

// queues are servers with workers, each of which serves a call in 50 ms, first in, first out.
type queues struct {
	*memoryNetwork
	start   time.Time
	fault   func(ctx context.Context, address string, since time.Duration) error // or nil
	workers map[string]chan struct{}
	service time.Duration
}

func newQueues(t *testing.T, workers int, addresses ...string) *queues {
	t.Cleanup(func() { time.Sleep(time.Minute) }) // after the servers have stopped: handlers still work
	q := &queues{memoryNetwork: newMemory(t, understudy.Recommended().ServerKeepalive()), start: time.Now(), workers: map[string]chan struct{}{}, service: 50 * time.Millisecond}
	for _, a := range addresses {
		q.workers[a] = make(chan struct{}, workers)
	}
	q.handle = q.serve
	return q
}

func (q *queues) serve(ctx context.Context, address string) error {
	if q.fault != nil {
		if err := q.fault(ctx, address, time.Since(q.start)); err != nil {
			time.Sleep(time.Millisecond) // on a network, a client's deadline is over before the server says so
			return err
		}
	}
	select {
	case q.workers[address] <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	time.Sleep(q.service)
	<-q.workers[address]
	return nil
}

// traffic is what became of calls.
type traffic struct {
	calls, lost int
	byPriority  map[byte]int
	codes       map[codes.Code]int
	firstB      time.Duration // when the second priority answered first
}

// send sends so many calls a second from all channels, at about equal distances.
func (q *queues) send(channels []*grpc.ClientConn, rate float64, length time.Duration) (r traffic) {
	r.byPriority, r.codes = map[byte]int{}, map[codes.Code]int{}
	var mu sync.Mutex
	var running sync.WaitGroup
	random := rand.New(rand.NewPCG(1, 2))
	for end := time.Now().Add(length); time.Now().Before(end); r.calls++ {
		cc := channels[random.IntN(len(channels))]
		running.Go(func() {
			address, err := q.call(cc)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				r.lost++
				r.codes[status.Code(err)]++
				return
			}
			if r.byPriority[address[0]]++; address[0] == 'b' && r.firstB == 0 {
				r.firstB = time.Since(q.start)
			}
		})
		time.Sleep(time.Duration((0.5 + random.Float64()) / rate * float64(time.Second)))
	}
	running.Wait()
	return r
}

func (q *queues) channels(n int, o understudy.Options, target string) (list []*grpc.ClientConn) {
	for range n {
		list = append(list, q.newChannel(target, o))
	}
	return list
}

const twoOfOne = "failover:///tier:///a1,tier:///b1"

// Ten clients send 300 calls a second to two priorities that do 200 each. Without Overflow, all go
// to the first one until they fail, and then to the second one.
func TestOverflowCarriesWhatOnePriorityCannot(t *testing.T) {
	for name, test := range map[string]struct {
		options  understudy.Options
		min, max float64
	}{
		"without Overflow": {understudy.Options{OutlierDetection: understudy.On}, 0.5, 1},
		"recommended":      {understudy.Recommended(), 0, 0.005},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueues(t, 10, "a0", "b0")
				r := q.send(q.channels(10, test.options, twoOfOne), 300, 40*time.Second)
				t.Logf("%+v", r)
				if lost := float64(r.lost) / float64(r.calls); lost < test.min || lost > test.max {
					t.Errorf("%.2f %% of the calls are lost, want %v to %v", 100*lost, 100*test.min, 100*test.max)
				}
			})
		})
	}
}

// At 500 calls a second, a fifth must be lost. They are refused at once, by the client.
func TestOverflowRefusesWhatNoPriorityCarries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues(t, 10, "a0", "b0")
		channels := q.channels(10, understudy.Recommended(), twoOfOne)
		q.send(channels, 500, 10*time.Second)
		r := q.send(channels, 500, 20*time.Second)
		t.Logf("%+v", r)
		if lost := float64(r.lost) / float64(r.calls); lost > 0.28 || r.codes[codes.ResourceExhausted] < r.lost*2/3 {
			t.Errorf("%.1f %% of the calls are lost, with %v; want at most 28, most of them refused", 100*lost, r.codes)
		}
		for range 300 {
			began := time.Now()
			_, err := healthpb.NewHealthClient(channels[0]).Check(t.Context(), &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
			if err == nil {
				continue
			}
			if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "shed: every priority is full") || time.Since(began) > 0 {
				t.Errorf("a call that waits for ready ended after %v with %v", time.Since(began), err)
			}
			return
		}
	})
}

// Endpoints of a full priority are no outliers: if outlier detection ejects some, the others are
// fuller.
func TestOverflowEjectsNoEndpointBecauseItIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues(t, 2, "a0", "a1", "a2", "b0", "b1", "b2")
		channels := q.channels(1, understudy.Recommended(), "failover:///tier:///a3,tier:///b3")
		q.send(channels, 100, 10*time.Second)
		q.send(channels, 360, 20*time.Second)
		r := q.send(channels, 360, 30*time.Second)
		answered := float64(r.calls-r.lost) / 30
		t.Logf("%.0f calls a second are answered, of 240: %+v", answered, r)
		if answered < 0.85*240 {
			t.Errorf("%.0f calls a second are answered, want 204", answered)
		}
	})
}

// With one connection for each priority, a server that closes it moves calls for an instant. The
// share stays 1, because the connection is back within a second. No call waits or is lost, and nothing
// is logged, not even about the servers' keepalive.
func TestOverflowKeepsShareOfPriorityThatReconnects(t *testing.T) {
	for name, pickFirst := range map[string]bool{"round robin": false, "pick_first": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory(t, understudy.Recommended().ServerKeepalive(), grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: 8 * time.Second}))
				o, r := understudy.Recommended(), &logRecords{}
				o.Logger = slog.New(r)
				if pickFirst {
					o.OutlierDetection, o.EndpointPolicy = understudy.Off, "pick_first"
				}
				failed, tiers := m.calls(m.newChannel(twoOfOne, o), 50*time.Millisecond, 5*time.Minute)
				if calls := failed + tiers['a'] + tiers['b']; failed > 0 || tiers['b'] > calls/200 || m.attempts("a0") < 30 {
					t.Errorf("%d calls failed, the others went to %v", failed, tiers)
				}
				if lines := r.take(true); len(lines) > 0 {
					t.Errorf("logged %q", lines)
				}
			})
		})
	}
}

// A priority that was gone for longer may be cold: its share grows from a probe on.
func TestOverflowRampsAfterOutage(t *testing.T) {
	for name, test := range map[string]struct {
		ramp     time.Duration
		min, max float64 // of the calls that the first priority gets, from 10 s to 20 s after the outage
	}{
		"in 8 s":  {0, 0.6, 0.95},
		"in 5 m":  {5 * time.Minute, 0.02, 0.2}, // about 35 of 500 calls, by chance
		"in 20 s": {20 * time.Second, 0.2, 0.6},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory(t, understudy.Recommended().ServerKeepalive())
				o := understudy.Recommended()
				o.Ramp = test.ramp
				cc := m.newChannel(twoOfOne, o)
				m.await("b0")
				if failed, tiers := m.calls(cc, 20*time.Millisecond, 10*time.Second); failed > 0 || tiers['b'] > 0 {
					t.Fatalf("at first, %d calls failed, the others went to %v", failed, tiers)
				}
				m.setDown(true, "a0")
				if failed, tiers := m.calls(cc, 20*time.Millisecond, 20*time.Second); failed > 0 || tiers['a'] > 0 {
					t.Errorf("in the outage, %d calls failed, the others went to %v", failed, tiers)
				}
				m.setDown(false, "a0")
				m.await("a0")
				synctest.Wait()
				failed, tiers := m.calls(cc, 20*time.Millisecond, 10*time.Second)
				later, tiersLater := m.calls(cc, 20*time.Millisecond, 10*time.Second)
				share := float64(tiersLater['a']) / 500
				if failed+later > 0 || tiers['a'] == 0 || share < test.min || share > test.max {
					t.Errorf("%d calls failed; the first priority gets %d calls at first and then %.2f of them, want %v to %v", failed+later, tiers['a'], share, test.min, test.max)
				}
			})
		})
	}
}

// Without WarmStandby, the next priority is connected when one cannot carry its calls, and is kept
// as long as it takes some.
func TestOverflowConnectsPriorityThatIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues(t, 1, "a0", "b0")
		q.service = 100 * time.Millisecond
		o := understudy.Recommended()
		o.WarmStandby = 0
		channels := q.channels(1, o, twoOfOne)
		q.send(channels, 5, 10*time.Second)
		if q.attempts("b0") > 0 {
			t.Error("the second priority is connected before it is wanted")
		}
		q.send(channels, 15, 20*time.Second)
		if r := q.send(channels, 15, 16*time.Minute); float64(r.lost) > 0.005*float64(r.calls) {
			t.Errorf("%+v, want nearly no call lost", r)
		}
		if q.attempts("b0") != 1 {
			t.Errorf("%d connections to the second priority, want that it is kept", q.attempts("b0"))
		}
	})
}

// newHanging returns servers of which the first hangs from 10 s to 70 s, and a channel that has left
// it.
func newHanging(t *testing.T) (*queues, []*grpc.ClientConn) {
	q := newQueues(t, 10, "a0", "b0")
	q.fault = func(ctx context.Context, address string, since time.Duration) error {
		if address == "a0" && since > 10*time.Second && since < 70*time.Second {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	channels := q.channels(1, understudy.Recommended(), twoOfOne)
	q.send(channels, 20, 30*time.Second)
	return q, channels
}

// While the first priority hangs, the second one reconnects. Calls wait for it, and are not refused.
// Probes of the first one are lost.
func TestOverflowWaitsBesideHangingPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, channels := newHanging(t)
		q.setHanging(true, "b0")
		time.AfterFunc(1500*time.Millisecond, func() { q.setHanging(false, "b0") })
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var running sync.WaitGroup
		var answered atomic.Int32
		began := time.Now()
		for range 20 {
			running.Go(func() {
				_, err := healthpb.NewHealthClient(channels[0]).Check(ctx, &healthpb.HealthCheckRequest{})
				if waited := time.Since(began); err == nil && waited > time.Second && waited < 3*time.Second {
					answered.Add(1)
				}
			})
		}
		running.Wait()
		if answered.Load() < 17 {
			t.Errorf("%d of 20 calls are answered after about two seconds, want all but a few probes", answered.Load())
		}
	})
}

// The first priority hangs for a minute and recovers, and then the second one is lost. A probe each
// second finds that the first one answers, so that calls do not wait for the second one.
func TestOverflowDoesNotWaitBesideRecoveredPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, channels := newHanging(t)
		q.send(channels, 20, 41*time.Second)
		q.setHanging(true, "b0")
		if r := q.send(channels, 20, 10*time.Second); r.lost > 1 {
			t.Errorf("%+v, want at most a probe to be lost", r)
		}
	})
}

// A new channel waits for its first priority, although the standby is READY at once, until the
// failover timeout is over. Only then are all endpoints of the standby connected.
func TestStandbyWaitsForFirstPriorityAtStart(t *testing.T) {
	for name, test := range map[string]struct {
		trouble     func(m *memoryNetwork)
		to          byte
		least, most time.Duration // until the first answer
	}{
		"a slow handshake":   {func(m *memoryNetwork) { time.AfterFunc(1500*time.Millisecond, func() { m.setHanging(false, "a0") }) }, 'a', 1500 * time.Millisecond, 1600 * time.Millisecond},
		"a handshake of 3 s": {func(m *memoryNetwork) { time.AfterFunc(3*time.Second, func() { m.setHanging(false, "a0") }) }, 'b', 2 * time.Second, 2100 * time.Millisecond},
		"no handshake":       {func(*memoryNetwork) {}, 'b', 2 * time.Second, 2100 * time.Millisecond},
		"refused":            {func(m *memoryNetwork) { m.setHanging(false, "a0"); m.setDown(true, "a0") }, 'b', 0, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory(t, understudy.Recommended().ServerKeepalive())
				m.setHanging(true, "a0")
				defer func() {
					m.setHanging(false, "a0")
					time.Sleep(time.Second) // an attempt ends
				}()
				test.trouble(m)
				standby := addressNames("b", 60)
				cc := m.newChannel("failover:///tier:///a1,tier:///b60", understudy.Recommended())
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				time.AfterFunc(time.Second, func() {
					if n := m.connected(standby...); test.least > 0 && n != 20 {
						t.Errorf("%d endpoints of the standby are connected while calls wait, want 20", n)
					}
				})
				var p peer.Peer
				_, err := healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Peer(&p))
				if err != nil {
					t.Fatal(err)
				}
				if waited := time.Since(began); p.Addr.String()[0] != test.to || waited < test.least || waited > test.most {
					t.Errorf("%v answers after %v, want %c between %v and %v", p.Addr, waited, test.to, test.least, test.most)
				}
				failed, tiers := m.calls(cc, 20*time.Millisecond, time.Second)
				if failed > 0 || len(tiers) != 1 {
					t.Errorf("then %d calls fail, and the others go to %v", failed, tiers)
				}
				if n := m.connected(standby...); n != map[byte]int{'a': 20, 'b': 60}[test.to] {
					t.Errorf("%d endpoints of the standby are connected, and calls go to %c", n, test.to)
				}
			})
		})
	}
}

// An update replaces the priority in use by one whose endpoint does not answer. If the standby is
// READY, it gets the calls at once. If it is new as well, calls wait for the failover timeout.
func TestPriorityInUseIsReplaced(t *testing.T) {
	for name, test := range map[string]struct {
		priorities []string
		waiting    time.Duration
		to         string
	}{
		"the standby remains": {[]string{"n", "b"}, 0, "b"},
		"all are replaced":    {[]string{"n", "o"}, 2 * time.Second, "o"},
	} {
		t.Run(name, func(t *testing.T) {
			inFleetWith(t, recommended, func(h *fleet) {
				h.wantCallsTo("before", "a")
				h.pending = setOf("n0")
				h.setPriorities(recommended, test.priorities...)
				waiting := time.Duration(h.countWaiting(5*time.Second)) * 5 * time.Millisecond
				if waiting > test.waiting+10*time.Millisecond || waiting < test.waiting-10*time.Millisecond {
					t.Errorf("calls wait for %v, want %v", waiting, test.waiting)
				}
				h.wantCallsTo("after", test.to)
			}, 1, 1)
		})
	}
	t.Run("all are replaced, and the first one is slower", func(t *testing.T) {
		inFleetWith(t, recommended, func(h *fleet) {
			h.calls(time.Minute)
			h.pending = setOf("n0")
			h.setPriorities(recommended, "n", "o")
			if n := h.countWaiting(time.Second); n != 200 {
				t.Errorf("%d of 200 calls wait, want all", n)
			}
			h.pending = nil
			h.settle()
			h.wantCallsTo("it connects within the failover timeout", "n")
		}, 1, 1)
	})
}
