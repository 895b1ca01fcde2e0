package serve

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxQueued = 1 << 20
	// flushPatience limits how long close waits for the last lines to be written.
	flushPatience = time.Second
)

// queue is a writer of lines that never blocks. A goroutine passes the lines on to out. If that is
// too slow or blocks, lines are dropped and counted.
type queue struct {
	out  io.Writer
	note func(w io.Writer, dropped uint64)

	total atomic.Uint64 // all lines dropped so far

	mu      sync.Mutex
	lines   []byte
	dropped uint64 // lines dropped since the last take
	closed  bool

	more  chan struct{}
	ended chan struct{}
}

func newQueue(out io.Writer, note func(w io.Writer, dropped uint64)) *queue {
	q := &queue{out: out, note: note, more: make(chan struct{}, 1), ended: make(chan struct{})}
	go q.run()
	return q
}

// Write queues one or more lines, or drops them if the queue is full or closed.
func (q *queue) Write(line []byte) (int, error) {
	q.mu.Lock()
	if q.closed || len(q.lines)+len(line) > maxQueued {
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
	q.total.Add(n)
	return n
}

func (q *queue) wake() {
	select {
	case q.more <- struct{}{}:
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
	defer close(q.ended)
	var untold uint64 // dropped lines that the log does not mention yet
	for range q.more {
		lines, dropped, open := q.take()
		if len(lines) > 0 {
			_, err := q.out.Write(lines)
			if err != nil {
				dropped += q.count(lines)
			}
			if untold += dropped; untold > 0 && err == nil {
				q.note(q.out, untold)
				untold = 0
			}
		}
		if !open {
			return
		}
	}
}

// close closes the queue and waits until all lines are written, but at most for flushPatience.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.wake()
	select {
	case <-q.ended:
	case <-time.After(flushPatience):
	}
}
