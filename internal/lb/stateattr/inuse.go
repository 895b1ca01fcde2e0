package stateattr

import (
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/lb/serial"
)

// PriorityInUse describes the priority in use. The root package has a type with the same fields.
type PriorityInUse struct {
	Target string
	Index  int // 0 is the highest priority
	Name   string
	State  connectivity.State
	Since  time.Time
	Why    string
}

// NoPriority and NoName are the Index and Name if no priority can take calls.
const (
	NoPriority = -1
	NoName     = "none"
)

// InUseReporter calls a function of the application on its own goroutine, one call at a time. It is
// safe for concurrent use.
type InUseReporter struct {
	report func(PriorityInUse)
	serial serial.Serializer
}

func NewInUseReporter(report func(PriorityInUse)) *InUseReporter {
	if report == nil {
		return nil
	}
	return &InUseReporter{report: report}
}

// InUseChannel reports the priority in use of a single channel, until it's closed. If it's nil, it
// does nothing.
type InUseChannel struct {
	reporter *InUseReporter
	target   string
	closed   atomic.Bool

	mu   sync.Mutex
	last *PriorityInUse
}

func (t *InUseReporter) Channel(target string) *InUseChannel {
	if t == nil {
		return nil
	}
	return &InUseChannel{reporter: t, target: target}
}

// Report reports p unless it equals the last report. It doesn't block. If there was no priority in
// use and there still isn't, it stays quiet, even if the reason has changed.
func (c *InUseChannel) Report(p PriorityInUse) {
	if c == nil {
		return
	}
	p.Target = c.target
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil && (*c.last == p || c.last.Index == NoPriority && p.Index == NoPriority) {
		return
	}
	c.last = &p
	c.reporter.serial.Enqueue(func() {
		if !c.closed.Load() {
			c.reporter.report(p)
		}
	})
}

// Close stops the reports. If the application's function is running, it may continue, but it isn't
// called again.
func (c *InUseChannel) Close() {
	if c != nil {
		c.closed.Store(true)
	}
}
