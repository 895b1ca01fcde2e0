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

// eventTimeout is the maximum time to wait for an event. callTimeout is the deadline of calls that
// should be answered immediately. Both are long, because the machine may be busy.
const (
	eventTimeout = time.Minute
	callTimeout  = 30 * time.Second
)

// pace is the time between the calls of a loop: the tests run beside each other on two cores.
const pace = 10 * time.Millisecond

type call struct {
	begin, end time.Time
	answer
	err error
}

type flow struct {
	stop      func()       // returns when all calls have ended
	deadline  atomic.Int64 // deadline of new calls in nanoseconds
	mu        sync.Mutex
	calls     []call
	callEnded chan struct{}
}

func startFlow(t *testing.T, cc *grpc.ClientConn, deadline time.Duration) *flow {
	t.Helper()
	return startFlowOf(t, cc, deadline, pace)
}

func startFlowOf(t *testing.T, cc *grpc.ClientConn, deadline, interval time.Duration) *flow {
	t.Helper()
	f := &flow{callEnded: make(chan struct{})}
	f.deadline.Store(int64(deadline))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		ticks := time.NewTicker(interval)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				running.Go(func() { f.call(cc, time.Duration(f.deadline.Load())) })
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
	close(f.callEnded)
	f.callEnded = make(chan struct{})
}

// since returns the calls that have ended, except for the first n. The returned Go channel is
// closed when the next call ends.
func (f *flow) since(n int) ([]call, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls[n:]), f.callEnded
}

func (f *flow) count() int {
	all, _ := f.since(0)
	return len(all)
}

// await returns the first call, after the first n calls, for which matches returns true. It waits
// until there is such a call.
func (f *flow) await(t *testing.T, n int, what string, matches func(call) bool) call {
	t.Helper()
	timeout := time.After(eventTimeout)
	for first := n; ; {
		calls, ended := f.since(n)
		if i := slices.IndexFunc(calls, matches); i >= 0 {
			return calls[i]
		}
		n += len(calls)
		select {
		case <-ended:
		case <-timeout:
			all, _ := f.since(first)
			t.Fatalf("no call %s within %v; %s", what, eventTimeout, summary(all))
		}
	}
}

func answeredBy(name string) func(call) bool {
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

func wantOnlyCodes(t *testing.T, calls []call, allowed ...codes.Code) {
	t.Helper()
	for _, c := range calls {
		if code := status.Code(c.err); c.err != nil && !slices.Contains(allowed, code) {
			t.Errorf("a call ended with %v, allowed are %v; %s", c.err, allowed, summary(calls))
			return
		}
	}
}

// awaitConsecutive waits until matches has returned true for a hundred consecutive calls. It
// returns the time until the first of these calls ended.
func (f *flow) awaitConsecutive(t *testing.T, what string, matches func(call) bool) time.Duration {
	t.Helper()
	begin, first := time.Now(), f.count()
	timeout := time.After(eventTimeout)
	for {
		calls, ended := f.since(first)
		if i := findConsecutive(calls, matches); i >= 0 {
			return calls[i].end.Sub(begin)
		}
		select {
		case <-ended:
		case <-timeout:
			t.Fatalf("no hundred consecutive calls %s within %v; %s", what, eventTimeout, summary(calls))
		}
	}
}

func findConsecutive(calls []call, matches func(call) bool) int {
	n := 0
	for i, c := range calls {
		if n++; !matches(c) {
			n = 0
		}
		if n == 100 {
			return i - 99
		}
	}
	return -1
}
