package serve

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxQueued is how many bytes of lines wait for a log that is not read.
	maxQueued = 1 << 20
	// flushPatience is how long the last lines have to be written at the end.
	flushPatience = time.Second
)

// queue is a writer of lines that never waits. A goroutine of its own hands them to the
// writer behind it. Where that is too slow, or nobody reads what it is given, lines are
// dropped and counted.
type queue struct {
	out  io.Writer
	note func(w io.Writer, dropped uint64) // writes that lines were dropped

	total atomic.Uint64 // lines that were dropped

	mu      sync.Mutex
	lines   []byte // that wait
	dropped uint64 // since they were taken last
	closed  bool

	more  chan struct{} // there may be something to do
	ended chan struct{}
}

func newQueue(out io.Writer, note func(w io.Writer, dropped uint64)) *queue {
	q := &queue{out: out, note: note, more: make(chan struct{}, 1), ended: make(chan struct{})}
	go q.run()
	return q
}

// Write queues a line, or several, or drops them.
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

// count counts lines that nobody will see.
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

// take returns what is to be written now, and whether more may come.
func (q *queue) take() (lines []byte, dropped uint64, open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	lines, dropped = q.lines, q.dropped
	q.lines, q.dropped = nil, 0
	return lines, dropped, !q.closed
}

func (q *queue) run() {
	defer close(q.ended)
	var untold uint64 // dropped, which the log does not say yet
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

// close ends the queue once all is written, or after flushPatience.
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
