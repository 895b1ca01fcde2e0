package demo

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
)

type call struct {
	begin, end time.Time
	address    string
	err        error
}

// traffic makes unary calls in a loop, and records their results.
type traffic struct {
	cc   grpc.ClientConnInterface
	stop context.CancelFunc
	done sync.WaitGroup

	mu        sync.Mutex
	calls     []call
	callEnded chan struct{} // closed and replaced whenever a call ends
}

// senders is the number of concurrent senders, and pause is the pause of each sender between calls.
// With five senders, a backend that dies could fail five calls in a row, and outlier detection
// would eject it.
const (
	senders = 4
	pause   = 2 * time.Millisecond
)

func startTraffic(cc grpc.ClientConnInterface) *traffic {
	ctx, cancel := context.WithCancel(context.Background())
	t := &traffic{cc: cc, stop: cancel, callEnded: make(chan struct{})}
	for range senders {
		t.done.Go(func() { t.send(ctx) })
	}
	return t
}

func (t *traffic) send(ctx context.Context) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		begin := time.Now()
		callCtx, cancel := context.WithTimeout(ctx, 15*time.Second)
		address, err := callWhoAmI(callCtx, t.cc)
		cancel()
		if ctx.Err() != nil {
			return
		}
		t.record(call{begin: begin, end: time.Now(), address: address, err: err})
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (t *traffic) record(c call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls = append(t.calls, c)
	close(t.callEnded)
	t.callEnded = make(chan struct{})
}

func (t *traffic) close() {
	t.stop()
	t.done.Wait()
}

func (t *traffic) callsAfter(n int) ([]call, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls[n:len(t.calls):len(t.calls)], t.callEnded
}

func (t *traffic) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.calls)
}

// awaitAddresses waits until each address in want has answered a call. It ignores the first n
// calls. If ctx ends first, it returns ctx's error.
func (t *traffic) awaitAddresses(ctx context.Context, n int, want []string) error {
	missing := make(map[string]bool, len(want))
	for _, address := range want {
		missing[address] = true
	}
	for len(missing) > 0 {
		calls, callEnded := t.callsAfter(n)
		n += len(calls)
		for _, c := range calls {
			if c.err == nil {
				delete(missing, c.address)
			}
		}
		if len(missing) == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-callEnded:
		}
	}
	return nil
}

// awaitStreak waits until all addresses in want, and no others, have answered a number of calls in a
// row, given by length. It ignores the first n calls. If ctx ends first, it returns ctx's error.
func (t *traffic) awaitStreak(ctx context.Context, n int, want []string, length int) error {
	streak, answered := 0, make(map[string]bool)
	for {
		calls, callEnded := t.callsAfter(n)
		n += len(calls)
		for _, c := range calls {
			streak++
			answered[c.address] = true
			if c.err != nil || !slices.Contains(want, c.address) {
				streak = 0
				clear(answered)
			}
			if streak >= length && len(answered) == len(want) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-callEnded:
		}
	}
}
