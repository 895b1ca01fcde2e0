// Package live records this process's channels for the debug page. Without Enable, New returns nil,
// and methods of a nil Channel do nothing.
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
	mostIdle   = 100       // maximum number of recorded channels without a policy
	idleFor    = time.Hour // how long a channel without a policy is recorded
)

var on atomic.Bool

// Enable enables the recording of channels that are created afterwards.
func Enable() { on.Store(true) }

// On reports whether Enable was called.
func On() bool { return on.Load() }

// Source is the state of one source of endpoints.
type Source struct {
	Name       string // "" for the only source of a channel
	State      string
	Trying     string    // the pending operation, "" if there is none
	Version    string    // version of the answer, "" if the source has no versions
	Answered   time.Time // time of the last answer, zero if there is none
	Error      string    // current error
	Since      time.Time // when the current error began, zero if there is none
	Confirmed  time.Time // when the answer in use was last confirmed, zero without a current error
	LastError  string    // last error, even if it is resolved
	FailedAt   time.Time // time of LastError, zero if there is none
	Notes      []string  // about content of the answer that has no effect
	Endpoints  int
	Priorities int
}

// Event is one line of the history of a channel.
type Event struct {
	Time time.Time
	Text string
}

// Channel is the record of a channel. It is safe for concurrent use.
type Channel struct {
	ID     uint64
	Target string
	Made   time.Time

	mu      sync.Mutex
	events  []Event
	sources func() []Source // nil for a channel of other resolvers or after Stop
	last    []Source        // last state of the sources
	root    any             // the root policy, nil if there is none
	owner   any             // gRPC's channelz record
	tree    any             // last snapshot of the closed root
	closed  time.Time       // when the root was closed, zero if there is a root
}

// all holds this process's channels. Creating or closing a channel locks no other channels, except
// for a few without a root.
var all struct {
	mu       sync.Mutex
	next     uint64
	channels map[*Channel]struct{}
	rootless []*Channel // in the order in which they lost their root
}

// New records a channel until its sources and its root are gone. sources may be nil, and must
// return quickly. New returns nil if recording is off.
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

// Note adds an event, and discards the oldest if there are too many.
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

// Attach sets the root policy and gRPC's record of the channel. It discards the record that the
// same channel had before it was idle.
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

// Retire records that the root policy was closed, with its last snapshot.
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
	if len(all.rootless) > 2*mostIdle { // amortizes the cost of prune
		prune()
	}
}

// Stop records that the channel's sources have stopped. Their current errors become last errors.
func (c *Channel) Stop() {
	if c == nil {
		return
	}
	c.mu.Lock()
	if c.sources != nil {
		ask := c.sources
		c.mu.Unlock()
		last := slices.Clone(ask()) // c.mu is not held, because ask takes a lock; earlier callers may still read the slice
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

// gone reports whether the channel is closed or was idle for too long. The caller must hold all.mu.
func (c *Channel) gone(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.root == nil && c.sources == nil && (c.closed.IsZero() || now.Sub(c.closed) > idleFor || IsClosed(c.owner))
}

func (c *Channel) forgetIfGone() {
	if c.gone(time.Now()) {
		forget(func(other *Channel) bool { return other == c })
		delete(all.channels, c) // forget does not find a channel that never had a root
	}
}

// forget discards the rootless channels for which is returns true, and removes those with a new
// root from the list. The caller must hold all.mu.
func forget(is func(*Channel) bool) {
	all.rootless = slices.DeleteFunc(all.rootless, func(c *Channel) bool {
		if is(c) {
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

// prune discards the channels that are gone. If too many channels are idle, it also discards those
// that have been idle longest. The caller must hold all.mu.
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

// isIdle reports whether the channel has no policy and is not closed.
func (c *Channel) isIdle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closed.IsZero() && !IsClosed(c.owner)
}

// View is a snapshot of a Channel.
type View struct {
	*Channel
	Root    any // nil if there is none
	Owner   any
	Tree    any       // last snapshot of the closed root, nil if there is a root
	Closed  time.Time // when that root was closed
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
