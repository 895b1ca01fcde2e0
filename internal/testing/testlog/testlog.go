// Package testlog records what gRPC and this module log.
package testlog

import (
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/grpclog"
)

type Log struct {
	mu    sync.Mutex
	lines []string
}

// Capture sends the log to a new Log instead of standard error. It must run before gRPC logs
// anything, so call it in TestMain or to initialize a package variable.
func Capture() *Log {
	l := &Log{}
	// gRPC writes lines of any severity to the first writer.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(l, io.Discard, io.Discard))
	return l
}

func CaptureWarnings() *Log {
	l := &Log{}
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, l, io.Discard))
	return l
}

func (l *Log) Take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.Join(l.lines, "")
	l.lines = nil
	return text
}

func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(line))
	return len(line), nil
}

func (l *Log) Count(texts ...string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.lines {
		if containsAll(line, texts) {
			n++
		}
	}
	return n
}

func containsAll(line string, texts []string) bool {
	for _, text := range texts {
		if !strings.Contains(line, text) {
			return false
		}
	}
	return true
}

// Wait waits for a single log line that contains all of texts. If there's none within timeout, the
// test fails.
func (l *Log) Wait(t *testing.T, timeout time.Duration, texts ...string) {
	t.Helper()
	deadline := time.After(timeout)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for l.Count(texts...) == 0 {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not logged: %s", strings.Join(texts, " … "))
		}
	}
}
