package serve

import (
	"bytes"
	"io"
	"sync/atomic"
	"time"
)

const (
	maxQueuedLines = 1000
	// flushTimeout limits how long close waits for the last lines to be written.
	flushTimeout = time.Second
)

// queue is a writer of lines that never blocks. A goroutine writes the lines to out. If out is too
// slow or blocks, the queue drops lines and counts them.
type queue struct {
	lines   chan []byte // nil means that the queue is closed
	dropped atomic.Uint64
	done    chan struct{}
}

// newQueue returns a queue. Once lines can be written again, it calls report with the number of all
// lines that were dropped.
func newQueue(out io.Writer, report func(dropped uint64)) *queue {
	q := &queue{lines: make(chan []byte, maxQueuedLines), done: make(chan struct{})}
	go func() {
		defer close(q.done)
		var reported uint64
		for line := range q.lines {
			if line == nil {
				return
			}
			if _, err := out.Write(line); err != nil {
				q.dropped.Add(1)
			} else if n := q.dropped.Load(); n > reported {
				reported = n
				report(n)
			}
		}
	}()
	return q
}

// Write queues a line, or drops it if the queue is full.
func (q *queue) Write(line []byte) (int, error) {
	select {
	case q.lines <- bytes.Clone(line):
	default:
		q.dropped.Add(1)
	}
	return len(line), nil
}

// close waits until all lines are written, but no longer than flushTimeout.
func (q *queue) close() {
	timeout := time.After(flushTimeout)
	select {
	case q.lines <- nil:
	case <-timeout:
		return
	}
	select {
	case <-q.done:
	case <-timeout:
	}
}
