package serve

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/grpclog"
)

func newLog(output, level string, w io.Writer) (*slog.Logger, error) {
	var minLevel slog.Level
	if minLevel.UnmarshalText([]byte(level)) != nil {
		return nil, fmt.Errorf("log level %q: want debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: minLevel}
	switch output {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, fmt.Errorf("output %q: want text or json", output)
}

// setGRPCLogger makes gRPC and the standard library log to w, because writes to standard error may
// block. gRPC's log level still comes from the environment.
func setGRPCLogger(w io.Writer) {
	log.SetOutput(w)
	severity := strings.ToLower(os.Getenv("GRPC_GO_LOG_SEVERITY_LEVEL"))
	forSeverity := func(names ...string) io.Writer {
		if slices.Contains(names, severity) {
			return w
		}
		return io.Discard
	}
	verbosity, _ := strconv.Atoi(os.Getenv("GRPC_GO_LOG_VERBOSITY_LEVEL"))
	grpclog.SetLoggerV2(grpclog.NewLoggerV2WithVerbosity(forSeverity("info"), forSeverity("warning"), forSeverity("error", ""), verbosity))
}

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
