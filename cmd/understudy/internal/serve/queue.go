package serve

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxQueuedBytes = 1 << 20
	// flushTimeout limits how long close waits for the last lines to be written.
	flushTimeout = time.Second
)

// queue is a writer of lines that never blocks. A goroutine writes the lines to out. If out is too
// slow or blocks, the queue drops lines and counts them.
type queue struct {
	out           io.Writer
	reportDropped func(w io.Writer, dropped uint64)

	totalDropped atomic.Uint64 // number of lines dropped so far

	mu      sync.Mutex
	lines   []byte
	dropped uint64 // number of lines dropped since the last call of take
	closed  bool

	wakeup chan struct{}
	done   chan struct{}
}

func newQueue(out io.Writer, reportDropped func(w io.Writer, dropped uint64)) *queue {
	q := &queue{out: out, reportDropped: reportDropped, wakeup: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run()
	return q
}

// Write queues one or more lines, or drops them if the queue is full or closed.
func (q *queue) Write(line []byte) (int, error) {
	q.mu.Lock()
	if q.closed || len(q.lines)+len(line) > maxQueuedBytes {
		q.dropped += q.count(line)
	} else {
		q.lines = append(q.lines, line...)
	}
	q.mu.Unlock()
	q.wake()
	return len(line), nil
}

func (q *queue) count(lines []byte) uint64 {
	n := uint64(bytes.Count(lines, []byte{'\n'}))
	q.totalDropped.Add(n)
	return n
}

func (q *queue) wake() {
	select {
	case q.wakeup <- struct{}{}:
	default:
	}
}

// take removes and returns the queued lines and the number of dropped lines. open reports whether
// the queue is open.
func (q *queue) take() (lines []byte, dropped uint64, open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	lines, dropped = q.lines, q.dropped
	q.lines, q.dropped = nil, 0
	return lines, dropped, !q.closed
}

func (q *queue) run() {
	defer close(q.done)
	var unreported uint64 // number of dropped lines that have not been reported
	for range q.wakeup {
		lines, dropped, open := q.take()
		if len(lines) > 0 {
			_, err := q.out.Write(lines)
			if err != nil {
				dropped += q.count(lines)
			}
			if unreported += dropped; unreported > 0 && err == nil {
				q.reportDropped(q.out, unreported)
				unreported = 0
			}
		}
		if !open {
			return
		}
	}
}

// close closes the queue and waits until all lines are written, but no longer than flushTimeout.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.wake()
	select {
	case <-q.done:
	case <-time.After(flushTimeout):
	}
}
