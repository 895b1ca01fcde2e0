// Package inuse tells a program which priority of a channel has its calls.
package stateattr

import (
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/serial"
)

// PriorityInUse is the priority in use. The root package has a type with the same fields.
type PriorityInUse struct {
	Target string             // the channel's
	Index  int                // 0 is the highest, NoPriority stands for none
	Name   string             // as in the log
	State  connectivity.State // of what calls are given
	Since  time.Time          // when it came into use
	Why    string             // it did
}

// NoPriority is the Index where no priority can take calls, NoName the Name.
const (
	NoPriority = -1
	NoName     = "none"
)

// InUseReporter calls a function of the program: one call at a time, in order, and on no stack but
// its own. It is safe for concurrent use.
type InUseReporter struct {
	tell   func(PriorityInUse)
	serial serial.Serializer
}

// NewInUseReporter returns a teller of tell, nil where that is nil.
func NewInUseReporter(tell func(PriorityInUse)) *InUseReporter {
	if tell == nil {
		return nil
	}
	return &InUseReporter{tell: tell}
}

// InUseChannel tells of one channel until it is closed. A nil InUseChannel tells nothing.
type InUseChannel struct {
	teller *InUseReporter
	target string
	closed atomic.Bool

	mu   sync.Mutex
	last *PriorityInUse // nil before the first
}

// Channel returns what tells of a channel. A nil InUseReporter returns nil.
func (t *InUseReporter) Channel(target string) *InUseChannel {
	if t == nil {
		return nil
	}
	return &InUseChannel{teller: t, target: target}
}

// Tell tells of a priority, unless it was told last, and returns at once. That there is still
// none is not told again, whatever the reason is by now.
func (c *InUseChannel) Tell(p PriorityInUse) {
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
	c.teller.serial.Enqueue(func() {
		if !c.closed.Load() {
			c.teller.tell(p)
		}
	})
}

// Close ends it: no call of the function begins afterwards. One that is under way may go on.
func (c *InUseChannel) Close() {
	if c != nil {
		c.closed.Store(true)
	}
}
