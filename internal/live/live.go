// Package live records the channels of this process for the debug page. Before Enable is called,
// New returns nil, and methods of a nil Channel do nothing.
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
	mostEvents = 100
	mostIdle   = 100       // maximum number of idle channels that are recorded
	idleFor    = time.Hour // how long a channel that stays idle is recorded
)

var on atomic.Bool

// Enable enables recording for channels that are created later.
func Enable() { on.Store(true) }

// On reports whether Enable was called.
func On() bool { return on.Load() }

// Source is the state of one source of a channel.
type Source struct {
	Name       string // "" if the channel has only one source
	State      string
	Trying     string // what the source is waiting for, or ""
	Version    string
	Answered   time.Time
	Error      string
	Since      time.Time
	Confirmed  time.Time // if there is an Error, when the answer in use was last confirmed
	LastError  string    // the last error, even if it is over
	FailedAt   time.Time
	Notes      []string
	Endpoints  int
	Priorities int
}

// Event is one line of a channel's history.
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
	sources func() []Source // nil after Stop, and for channels with a resolver of another module
	last    []Source
	root    any
	owner   any // gRPC's channelz record of the channel
	tree    any // last snapshot of a closed root policy
	closed  time.Time
}

// all holds the recorded channels of this process. When a channel opens or closes, only the
// channels without a root policy are locked, which are few.
var all struct {
	mu       sync.Mutex
	next     uint64
	channels map[*Channel]struct{}
	rootless []*Channel // the channel whose root policy was closed first is first
}

// New records a channel until its sources and its root policy are gone. sources returns the state
// of the sources. It must be quick, and may be nil. New returns nil if recording is disabled.
func New(target string, sources func() []Source) *Channel {
	if !On() {
		return nil
	}
	c := &Channel{Target: target, Made: time.Now(), sources: sources}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.next++
	c.ID = all.next
	if all.channels == nil {
		all.channels = make(map[*Channel]struct{})
	}
	all.channels[c] = struct{}{}
	return c
}

// Note adds an event. If there are too many, it discards the oldest event.
func (c *Channel) Note(text string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.events) == mostEvents {
		c.events = slices.Delete(c.events, 0, 1)
	}
	c.events = append(c.events, Event{time.Now(), text})
}

// Attach records the root policy of a channel, and gRPC's own record of the channel. If the channel
// was idle, its earlier Channel is discarded.
func (c *Channel) Attach(root, owner any) {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.root, c.owner, c.closed = root, owner, time.Time{}
	c.mu.Unlock()
	all.mu.Lock()
	defer all.mu.Unlock()
	forget(func(other *Channel) bool { return owner != nil && other.isClosed(owner) })
}

func (c *Channel) isClosed(owner any) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closed.IsZero() && c.owner == owner
}

// Retire records that the root policy was closed. tree is its last snapshot.
func (c *Channel) Retire(tree any) {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.root, c.tree, c.closed = nil, tree, time.Now()
	c.mu.Unlock()
	all.mu.Lock()
	defer all.mu.Unlock()
	if _, known := all.channels[c]; known {
		all.rootless = append(all.rootless, c)
	}
	c.forgetIfGone()
	if len(all.rootless) > 2*mostIdle { // not at each call, because prune is slow
		prune()
	}
}

// Stop records that the channel's sources have stopped. Their current errors become their last
// errors.
func (c *Channel) Stop() {
	if c == nil {
		return
	}
	c.mu.Lock()
	if c.sources != nil {
		ask := c.sources
		c.mu.Unlock()
		// ask is called without holding c.mu, because it takes another lock. The result is cloned,
		// because earlier callers may still read the slice.
		last := slices.Clone(ask())
		for i := range last {
			last[i].Error, last[i].Since, last[i].Confirmed = "", time.Time{}, time.Time{}
		}
		c.mu.Lock()
		c.sources, c.last = nil, last
	}
	c.mu.Unlock()
	all.mu.Lock()
	defer all.mu.Unlock()
	c.forgetIfGone()
}

// gone reports whether the channel is closed or was idle for too long. The caller holds all.mu.
func (c *Channel) gone(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.root == nil && c.sources == nil && (c.closed.IsZero() || now.Sub(c.closed) > idleFor || IsClosed(c.owner))
}

func (c *Channel) forgetIfGone() {
	if c.gone(time.Now()) {
		forget(func(other *Channel) bool { return other == c })
		delete(all.channels, c) // needed because forget does not find channels that never had a root policy
	}
}

// forget discards the channels without a root policy that match. The caller holds all.mu.
func forget(matches func(*Channel) bool) {
	all.rootless = slices.DeleteFunc(all.rootless, func(c *Channel) bool {
		if matches(c) {
			delete(all.channels, c)
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

// prune discards channels that are gone. If too many idle channels remain, it discards the ones
// that became idle first. The caller holds all.mu.
func prune() {
	now := time.Now()
	forget(func(c *Channel) bool { return c.gone(now) })
	idle := 0
	for _, c := range all.rootless {
		if c.isIdle() {
			idle++
		}
	}
	forget(func(c *Channel) bool {
		if idle <= mostIdle || !c.isIdle() {
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

// View is a snapshot of a Channel.
type View struct {
	*Channel
	Root    any
	Owner   any
	Tree    any
	Closed  time.Time
	Sources []Source
	Events  []Event // oldest first
}

// Channels returns snapshots of all channels, oldest first.
func Channels() []View {
	all.mu.Lock()
	prune()
	channels := slices.SortedFunc(maps.Keys(all.channels), func(a, b *Channel) int { return cmp.Compare(a.ID, b.ID) })
	all.mu.Unlock()
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
	ask := c.sources
	c.mu.Unlock()
	if ask != nil {
		v.Sources = ask()
	}
	return v
}
