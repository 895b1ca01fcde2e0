// Package live records the channels of this process for the debug page. Until Enable is called, New
// returns nil, and the methods of a nil Channel do nothing.
package live

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxEvents     = 100
	maxIdle       = 100 // maximum number of idle channels that we record
	idleRetention = time.Hour
)

var enabled atomic.Bool

func Enable() { enabled.Store(true) }

func Disable() { enabled.Store(false) }

func Enabled() bool { return enabled.Load() }

type Source struct {
	Name       string
	State      string
	Trying     string
	Version    string
	Answered   time.Time
	Error      string
	Since      time.Time
	Confirmed  time.Time // if Error is set, when the answer in use was last confirmed
	LastError  string    // may be from before the source recovered
	FailedAt   time.Time
	Notes      []string
	Endpoints  int
	Priorities int
}

type Event struct {
	Time time.Time
	Text string
}

// Channel is the record of one channel. It is safe for concurrent use.
type Channel struct {
	ID     uint64
	Target string
	Made   time.Time

	mu      sync.Mutex
	events  []Event
	sources func() []Source // nil after Stop, or if the resolver is from another module
	last    []Source        // without current errors
	root    any
	owner   any // gRPC's channelz record of the channel
	tree    any // the last snapshot, if the root policy was closed
	closed  time.Time
}

// registry has the recorded channels. To record or discard one, we only lock channels without a
// root policy, of which there are few.
var registry struct {
	mu       sync.Mutex
	next     uint64
	channels map[*Channel]struct{}
	rootless []*Channel // channels whose root policy was closed, oldest first
}

// New records a channel until its sources have stopped and its root policy is closed. sources
// returns the state of the sources. It must be quick, and may be nil. If recording is disabled, New
// returns nil.
func New(target string, sources func() []Source) *Channel {
	if !Enabled() {
		return nil
	}
	c := &Channel{Target: target, Made: time.Now(), sources: sources}
	registry.mu.Lock()
	defer registry.mu.Unlock()
	registry.next++
	c.ID = registry.next
	if registry.channels == nil {
		registry.channels = make(map[*Channel]struct{})
	}
	registry.channels[c] = struct{}{}
	return c
}

func (c *Channel) Note(text string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.events) == maxEvents {
		c.events = slices.Delete(c.events, 0, 1)
	}
	c.events = append(c.events, Event{time.Now(), text})
}

// Attach records a channel's root policy, and its owner, i.e. gRPC's channelz record. If the
// channel was idle before, we discard the Channel from back then.
func (c *Channel) Attach(root, owner any) {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.root, c.owner, c.closed = root, owner, time.Time{}
	c.mu.Unlock()
	registry.mu.Lock()
	defer registry.mu.Unlock()
	discard(func(other *Channel) bool { return owner != nil && other.isClosed(owner) })
}

func (c *Channel) isClosed(owner any) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closed.IsZero() && c.owner == owner
}

func (c *Channel) Retire(tree any) {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.root, c.tree, c.closed = nil, tree, time.Now()
	c.mu.Unlock()
	registry.mu.Lock()
	defer registry.mu.Unlock()
	if _, known := registry.channels[c]; known {
		registry.rootless = append(registry.rootless, c)
	}
	c.discardIfGone()
	if len(registry.rootless) > 2*maxIdle { // prune is too slow to run every time
		prune()
	}
}

// Stop records that the channel's sources have stopped. From then on they have no current error,
// just a last one.
func (c *Channel) Stop() {
	if c == nil {
		return
	}
	c.mu.Lock()
	if c.sources != nil {
		sources := c.sources
		c.mu.Unlock()
		// sources takes another lock, so we can't hold c.mu here. We clone the result because
		// earlier callers may still be reading the slice.
		last := slices.Clone(sources())
		for i := range last {
			last[i].Error, last[i].Since, last[i].Confirmed = "", time.Time{}, time.Time{}
		}
		c.mu.Lock()
		c.sources, c.last = nil, last
	}
	c.mu.Unlock()
	registry.mu.Lock()
	defer registry.mu.Unlock()
	c.discardIfGone()
}

// isGone returns true if a channel is closed, or has been idle for more than idleRetention. The
// caller must hold registry.mu.
func (c *Channel) isGone(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.root == nil && c.sources == nil && (c.closed.IsZero() || now.Sub(c.closed) > idleRetention || IsClosed(c.owner))
}

func (c *Channel) discardIfGone() {
	if c.isGone(time.Now()) {
		discard(func(other *Channel) bool { return other == c })
		delete(registry.channels, c) // in case it never had a root policy, which discard wouldn't find
	}
}

// discard only considers channels without a root policy. The caller must hold registry.mu.
func discard(matches func(*Channel) bool) {
	registry.rootless = slices.DeleteFunc(registry.rootless, func(c *Channel) bool {
		if matches(c) {
			delete(registry.channels, c)
			return true
		}
		return c.hasRoot()
	})
}

func (c *Channel) hasRoot() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.root != nil
}

// prune discards the channels that are gone. If more than maxIdle idle ones remain, those that have
// been idle the longest go as well. The caller must hold registry.mu.
func prune() {
	now := time.Now()
	discard(func(c *Channel) bool { return c.isGone(now) })
	idle := 0
	for _, c := range registry.rootless {
		if c.isIdle() {
			idle++
		}
	}
	discard(func(c *Channel) bool {
		if idle <= maxIdle || !c.isIdle() {
			return false
		}
		idle--
		return true
	})
}

func (c *Channel) isIdle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closed.IsZero() && !IsClosed(c.owner)
}

type View struct {
	*Channel
	Root    any
	Owner   any
	Tree    any
	Closed  time.Time
	Sources []Source
	Events  []Event
}

func Channels() []View {
	registry.mu.Lock()
	prune()
	channels := slices.SortedFunc(maps.Keys(registry.channels), func(a, b *Channel) int { return cmp.Compare(a.ID, b.ID) })
	registry.mu.Unlock()
	views := make([]View, 0, len(channels))
	for _, c := range channels {
		views = append(views, c.view())
	}
	return views
}

func (c *Channel) view() View {
	c.mu.Lock()
	v := View{Channel: c, Root: c.root, Owner: c.owner, Closed: c.closed, Sources: c.last, Events: slices.Clone(c.events)}
	if c.root == nil {
		v.Tree = c.tree
	}
	sources := c.sources
	c.mu.Unlock()
	if sources != nil {
		v.Sources = sources()
	}
	return v
}
