package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// limit is the timeout of events that must happen. patience is the deadline of calls that should be
// answered at once. Both are long, because the machine may be busy.
const (
	limit    = time.Minute
	patience = 30 * time.Second
)

type call struct {
	begin, end time.Time
	answer
	err error
}

type flow struct {
	stop  func()       // returns when all calls have ended
	limit atomic.Int64 // deadline of new calls in nanoseconds
	mu    sync.Mutex
	calls []call
	heard chan struct{}
}

func startFlow(t *testing.T, cc *grpc.ClientConn, deadline time.Duration) *flow {
	t.Helper()
	return startFlowOf(t, cc, deadline, 5*time.Millisecond)
}

func startFlowOf(t *testing.T, cc *grpc.ClientConn, deadline, every time.Duration) *flow {
	t.Helper()
	f := &flow{heard: make(chan struct{})}
	f.limit.Store(int64(deadline))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				running.Go(func() { f.call(cc, time.Duration(f.limit.Load())) })
			case <-ctx.Done():
				return
			}
		}
	})
	f.stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(f.stop)
	return f
}

func (f *flow) call(cc *grpc.ClientConn, deadline time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	c := call{begin: time.Now()}
	c.answer, c.err = who(ctx, cc)
	c.end = time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, c)
	close(f.heard)
	f.heard = make(chan struct{})
}

// since returns the calls that have ended, from the nth on. The returned Go channel is closed when
// the next call ends.
func (f *flow) since(n int) ([]call, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls[n:]), f.heard
}

func (f *flow) ended() int {
	all, _ := f.since(0)
	return len(all)
}

// await returns the first call from the nth on for which wanted is true. If there is none yet, it
// waits.
func (f *flow) await(t *testing.T, n int, what string, wanted func(call) bool) call {
	t.Helper()
	late := time.After(limit)
	for first := n; ; {
		calls, heard := f.since(n)
		if i := slices.IndexFunc(calls, wanted); i >= 0 {
			return calls[i]
		}
		n += len(calls)
		select {
		case <-heard:
		case <-late:
			all, _ := f.since(first)
			t.Fatalf("no call %s within %v; %s", what, limit, summary(all))
		}
	}
}

func of(name string) func(call) bool {
	return func(c call) bool { return c.err == nil && c.name == name }
}

func summary(calls []call) string {
	counts := map[string]int{}
	for _, c := range calls {
		if c.err != nil {
			counts[status.Code(c.err).String()]++
		} else {
			counts[c.name]++
		}
	}
	return fmt.Sprint(counts)
}

func only(t *testing.T, calls []call, allowed ...codes.Code) {
	t.Helper()
	for _, c := range calls {
		if code := status.Code(c.err); c.err != nil && !slices.Contains(allowed, code) {
			t.Errorf("a call ended with %v, allowed are %v; %s", c.err, allowed, summary(calls))
			return
		}
	}
}

// until waits until wanted has been true for a hundred calls in a row, and returns the time that
// this took.
func (f *flow) until(t *testing.T, what string, wanted func(call) bool) time.Duration {
	t.Helper()
	begin, first := time.Now(), f.ended()
	late := time.After(limit)
	for {
		calls, heard := f.since(first)
		if i := row(calls, wanted); i >= 0 {
			return calls[i].end.Sub(begin)
		}
		select {
		case <-heard:
		case <-late:
			t.Fatalf("no hundred consecutive calls %s within %v; %s", what, limit, summary(calls))
		}
	}
}

func row(calls []call, wanted func(call) bool) int {
	n := 0
	for i, c := range calls {
		if n++; !wanted(c) {
			n = 0
		}
		if n == 100 {
			return i - 99
		}
	}
	return -1
}
