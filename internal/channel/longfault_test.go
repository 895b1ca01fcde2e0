package channel_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy"
)

// longFault is a fault of both endpoints of the first priority from 60 s to 150 s. A call takes 0.1 s.
type longFault struct {
	name     string
	handle   func(ctx context.Context) error // nil: the endpoints refuse connections
	deadline time.Duration
	retries  bool
	bounds   map[int]longFaultCost // by calls a second
}

// longFaultCost is what becomes of the calls of one client. Times count from the end of the fault.
type longFaultCost struct {
	atFirst, later int           // calls lost that began in the first 10 s, and in the other 80 s
	back, all      time.Duration // until the first priority answers a call, and until it answers nine tenths in each 10 s
}

func fails(code codes.Code) func(context.Context) error {
	return func(context.Context) error { return status.Error(code, "broken") }
}

func hangs(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// docs/explanation/what-starts-a-failover.md has the highest figures of twelve runs. The bounds leave
// room above them, because shares and the order of the calls are random.
func TestFaultOf90Seconds(t *testing.T) {
	const s = time.Second
	for _, f := range []longFault{
		{"killed", nil, 30 * s, false, map[int]longFaultCost{20: {4, 0, 15 * s, 60 * s}, 1: {2, 0, 30 * s, 300 * s}}},
		{"INTERNAL", fails(codes.Internal), 30 * s, false, map[int]longFaultCost{20: {14, 4, 40 * s, 90 * s}, 1: {6, 5, 75 * s, 300 * s}}},
		{"UNAVAILABLE", fails(codes.Unavailable), 30 * s, false, map[int]longFaultCost{20: {14, 4, 40 * s, 90 * s}, 1: {6, 5, 75 * s, 300 * s}}},
		{"UNAVAILABLE, with retries", fails(codes.Unavailable), 30 * s, true, map[int]longFaultCost{20: {0, 0, 40 * s, 90 * s}, 1: {2, 0, 75 * s, 300 * s}}},
		{"handlers hang, deadline of 1 s", hangs, s, false, map[int]longFaultCost{20: {35, 8, 75 * s, 120 * s}, 1: {4, 5, 75 * s, 300 * s}}},
		{"handlers hang, deadline of 5 s", hangs, 5 * s, false, map[int]longFaultCost{20: {50, 12, 75 * s, 150 * s}, 1: {8, 8, 75 * s, 300 * s}}},
		{"handlers hang, deadline of 30 s", hangs, 30 * s, false, map[int]longFaultCost{20: {50, 50, 75 * s, 150 * s}, 1: {10, 16, 75 * s, 300 * s}}},
	} {
		for rate, bound := range f.bounds {
			t.Run(fmt.Sprintf("%s, %d a second", f.name, rate), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					got := f.cost(t, rate)
					t.Logf("lost %d and %d, back after %v, all after %v", got.atFirst, got.later, got.back, got.all)
					if got.atFirst > bound.atFirst || got.later > bound.later || got.back > bound.back || got.all > bound.all {
						t.Errorf("cost %+v, want at most %+v", got, bound)
					}
				})
			})
		}
	}
}

func (f longFault) cost(t *testing.T, rate int) (c longFaultCost) {
	const begins, length = 60 * time.Second, 90 * time.Second
	m, start := newMemory(t, understudy.Recommended().ServerKeepalive()), time.Now()
	m.handle = func(ctx context.Context, address string) error {
		if since := time.Since(start); address[0] == 'a' && since >= begins && since < begins+length && f.handle != nil {
			err := f.handle(ctx)
			time.Sleep(time.Millisecond) // on a network, a client's deadline is over before the server says so
			return err
		}
		time.Sleep(100 * time.Millisecond)
		return nil
	}
	if f.handle == nil {
		time.AfterFunc(begins, func() { m.setDown(true, "a0", "a1") })
		time.AfterFunc(begins+length, func() { m.setDown(false, "a0", "a1") })
	}
	o := understudy.Recommended()
	if f.retries {
		o.RetryMethods = []string{healthpb.Health_Check_FullMethodName}
	}
	client := healthpb.NewHealthClient(m.newChannel("failover:///tier:///a2,tier:///b2", o))

	var mu sync.Mutex
	var running sync.WaitGroup
	elsewhere := make([]int, 30)       // after the fault, in windows of 10 s
	for range rate * (350 + 70/rate) { // a client that calls seldom comes back later
		running.Go(func() {
			began := time.Since(start) - begins
			ctx, cancel := context.WithTimeout(context.Background(), f.deadline)
			defer cancel()
			var p peer.Peer
			_, err := client.Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Peer(&p))
			mu.Lock()
			defer mu.Unlock()
			after := time.Since(start) - begins - length
			switch {
			case err != nil && began < 10*time.Second:
				c.atFirst++
			case err != nil:
				c.later++
			case began < length:
			case p.Addr.String()[0] == 'a' && (c.back == 0 || after < c.back):
				c.back = after
			case p.Addr.String()[0] == 'b':
				elsewhere[(began-length)/(10*time.Second)]++
			}
		})
		time.Sleep(time.Second / time.Duration(rate))
	}
	running.Wait()
	for window, calls := range elsewhere {
		if calls > rate {
			c.all = time.Duration(window+1) * 10 * time.Second
		}
	}
	return c
}
