package serve

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxQueued limits the bytes that wait for a log that is not read.
	maxQueued = 1 << 20
	// flushPatience limits the time for writing the last lines at the end.
	flushPatience = time.Second
)

// queue is a writer of lines that never blocks. A goroutine passes the lines to the underlying
// writer. If that writer is too slow or blocked, lines are dropped and counted.
type queue struct {
	out  io.Writer
	note func(w io.Writer, dropped uint64) // writes the number of dropped lines

	total atomic.Uint64 // dropped lines

	mu      sync.Mutex
	lines   []byte // lines that wait to be written
	dropped uint64 // dropped since the last take
	closed  bool

	more  chan struct{} // wakes the goroutine
	ended chan struct{}
}

func newQueue(out io.Writer, note func(w io.Writer, dropped uint64)) *queue {
	q := &queue{out: out, note: note, more: make(chan struct{}, 1), ended: make(chan struct{})}
	go q.run()
	return q
}

// Write queues or drops one or more lines.
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

// count adds to the dropped lines.
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

// take returns the lines to write now, and whether more may come.
func (q *queue) take() (lines []byte, dropped uint64, open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	lines, dropped = q.lines, q.dropped
	q.lines, q.dropped = nil, 0
	return lines, dropped, !q.closed
}

func (q *queue) run() {
	defer close(q.ended)
	var untold uint64 // dropped and not logged yet
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

// close ends the queue once all lines are written, or after flushPatience.
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
