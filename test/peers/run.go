package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/understudy-lb/understudy/internal/testing/dnstest"
)

const (
	warmup          = 3 * time.Second
	observationTime = 30 * time.Second
	callInterval    = 20 * time.Millisecond
	deadline        = time.Second
)

type call struct {
	began, ended time.Time
	priority     string
	err          error
}

func run(dns *dnstest.Server, c contestant, f fault) (result, error) {
	w, err := newWorld(dns, f.secure)
	if err != nil {
		return result{}, err
	}
	defer w.close()
	cc, closeIt, err := c.dial(w)
	if err != nil {
		return result{}, err
	}
	defer closeIt()
	calls := startCalls(cc)
	defer calls.stop()
	wait(context.Background(), warmup)
	if err := calls.checkLast(); err != nil {
		return result{}, err
	}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	attempts, began := w.attempts.Load(), time.Now()
	if err := f.strike(w); err != nil {
		return result{}, err
	}
	struck := time.Now()
	var continues sync.WaitGroup
	var failed error
	if f.then != nil {
		continues.Go(func() { failed = f.then(ctx, w) })
	}
	wait(ctx, observationTime)
	r := summarize(calls.stop(), began, struck)
	r.connections = int(w.attempts.Load() - attempts)
	cancel()
	continues.Wait()
	return r, failed
}

// calls makes calls at a constant rate, without waiting for answers.
type calls struct {
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu    sync.Mutex
	ended []call
}

func startCalls(cc grpc.ClientConnInterface) *calls {
	ctx, cancel := context.WithCancel(context.Background())
	c := &calls{cancel: cancel}
	c.all.Go(func() {
		for next := time.Now(); wait(ctx, time.Until(next)); next = next.Add(callInterval) {
			c.all.Go(func() { c.make(cc) })
		}
	})
	return c
}

func (c *calls) make(cc grpc.ClientConnInterface) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	made := call{began: time.Now()}
	made.priority, made.err = callName(ctx, cc)
	made.ended = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = append(c.ended, made)
}

func (c *calls) stop() []call {
	c.cancel()
	c.all.Wait()
	return c.ended
}

// checkLast requires that none of the last 100 calls has failed, and that some have gone to the
// first priority.
func (c *calls) checkLast() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.ended[max(0, len(c.ended)-100):]
	for _, made := range last {
		if made.err != nil {
			return fmt.Errorf("a call failed before the fault: %w", made.err)
		}
	}
	if !slices.ContainsFunc(last, func(made call) bool { return made.priority == firstPriority }) {
		return errors.New("no call went to the first priority before the fault")
	}
	return nil
}

// summarize expects calls in the order in which they ended. The fault occurred somewhere between
// began and struck.
func summarize(all []call, began, struck time.Time) result {
	r := result{first: never}
	priority, row := firstPriority, 0
	for _, made := range all {
		if made.ended.Before(began) {
			continue
		}
		r.calls++
		r.longest = max(r.longest, made.ended.Sub(made.began))
		switch {
		case made.err != nil:
			r.lost++
			continue
		case made.priority == priority:
			row = 0
		default:
			row++
		}
		if row == answersOfChange {
			priority, row = made.priority, 0
			r.changes++
		}
		if after := made.ended.Sub(struck); !made.began.Before(struck) && after < r.first {
			r.first = after
		}
	}
	return r
}

// answersOfChange is how many answers in a row must come from the other priority to count as a
// change. With fewer, a client may just be testing whether a priority has recovered.
const answersOfChange = 5
