// Package inuse tells a program which priority of a channel has its calls.
package inuse

import (
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/serial"
)

// Priority is the priority in use. The root package has a type with the same fields.
type Priority struct {
	Target string             // the channel's
	Index  int                // 0 is the highest, None stands for none
	Name   string             // as in the log
	State  connectivity.State // of what calls are given
	Since  time.Time          // when it came into use
	Why    string             // it did
}

// None is the Index where no priority can take calls, NoName the Name.
const (
	None   = -1
	NoName = "none"
)

// Teller calls a function of the program: one call at a time, in order, and on no stack but
// its own. It is safe for concurrent use.
type Teller struct {
	tell   func(Priority)
	serial serial.Serializer
}

// NewTeller returns a teller of tell, nil where that is nil.
func NewTeller(tell func(Priority)) *Teller {
	if tell == nil {
		return nil
	}
	return &Teller{tell: tell}
}

// Channel tells of one channel until it is closed. A nil Channel tells nothing.
type Channel struct {
	teller *Teller
	target string
	closed atomic.Bool

	mu   sync.Mutex
	last *Priority // nil before the first
}

// Channel returns what tells of a channel. A nil Teller returns nil.
func (t *Teller) Channel(target string) *Channel {
	if t == nil {
		return nil
	}
	return &Channel{teller: t, target: target}
}

// Tell tells of a priority, unless it was told last, and returns at once. That there is still
// none is not told again, whatever the reason is by now.
func (c *Channel) Tell(p Priority) {
	if c == nil {
		return
	}
	p.Target = c.target
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil && (*c.last == p || c.last.Index == None && p.Index == None) {
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
func (c *Channel) Close() {
	if c != nil {
		c.closed.Store(true)
	}
}
