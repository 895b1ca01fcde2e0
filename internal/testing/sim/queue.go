package sim

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// queue is where calls wait while a backend has a limited capacity. In each interval one call
// begins, and then takes the service time.
type queue struct {
	interval, service time.Duration
	lifo              bool
	blind             bool
	limit             int        // if more calls than this are waiting, we refuse them; 0 means no limit
	code              codes.Code // returned to calls that we refuse

	mu       sync.Mutex
	waiting  []*waiter
	running  bool
	free     time.Time
	cold     time.Duration // for this long after the first call, calls are slower; 0 to disable
	firstUse time.Time
	arrived  int
}

type waiter struct {
	ctx   context.Context
	begun chan struct{}
}

func (q *queue) String() string {
	return fmt.Sprintf("%.1f/s lifo=%v blind=%v limit=%d %v", 1/q.interval.Seconds(), q.lifo, q.blind, q.limit, q.code)
}

func (q *queue) serve(ctx context.Context) error {
	c := &waiter{ctx, make(chan struct{})}
	q.mu.Lock()
	q.arrived++
	if q.limit > 0 && len(q.waiting) >= q.limit {
		q.mu.Unlock()
		return status.Error(q.code, "the queue is full")
	}
	q.waiting = append(q.waiting, c)
	if !q.running {
		q.running = true
		time.AfterFunc(time.Until(q.free), q.next)
	}
	q.mu.Unlock()
	if err := waitFor(ctx, c.begun); err != nil {
		return err
	}
	return waitFor(ctx, time.After(q.service))
}

func (q *queue) next() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) > 0 {
		i := 0
		if q.lifo {
			i = len(q.waiting) - 1
		}
		c := q.waiting[i]
		q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
		if c.ctx.Err() != nil && !q.blind {
			continue
		}
		close(c.begun)
		if q.firstUse.IsZero() {
			q.firstUse = time.Now()
		}
		interval := q.interval
		if q.cold > 0 {
			interval += time.Duration(3 * float64(interval) * math.Exp(-float64(time.Since(q.firstUse))/float64(q.cold)))
		}
		q.free = time.Now().Add(interval)
		time.AfterFunc(interval, q.next)
		return
	}
	q.running = false
}

func (q *queue) cool(d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.cold, q.firstUse = d, time.Time{}
}

func (q *queue) arrivals() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.arrived
}
