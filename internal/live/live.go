// Package live knows the channels of this process, for whoever shows them. Until Enable
// is called it knows nothing, and costs nothing: New returns nil, whose methods do
// nothing.
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
	mostIdle   = 100       // channels without a policy that are remembered,
	idleFor    = time.Hour // and for how long
)

var on atomic.Bool

// Enable has channels known that are made from now on.
func Enable() { on.Store(true) }

// On reports whether Enable was called.
func On() bool { return on.Load() }

// Source is what is known of one source of endpoints.
type Source struct {
	Name       string // "" for the only one of a channel
	State      string
	Trying     string    // what it waits for, "" where it has said something else
	Version    string    // of its answer, "" where it has no name for it
	Answered   time.Time // when it last answered, zero for never
	Error      string    // what is wrong with it now
	Since      time.Time // when that began, zero where nothing is
	Confirmed  time.Time // until when what is used on was confirmed, zero where nothing is wrong with it
	LastError  string    // what was wrong with it last, even if it is over
	FailedAt   time.Time // when it said that last, zero for never
	Notes      []string  // what its answer has and what has no effect
	Endpoints  int
	Priorities int
}

// Event is something that happened to a channel.
type Event struct {
	Time time.Time
	Text string
}

// Channel is what is known of one channel. It is safe for concurrent use.
type Channel struct {
	ID     uint64
	Target string
	Made   time.Time

	mu      sync.Mutex
	events  []Event
	sources func() []Source // nil where no source is ours, or any more
	last    []Source        // when sources became nil
	root    any             // the policy at the top, nil where there is none
	owner   any             // gRPC's own record of the channel
	tree    any             // of the root that was closed last
	closed  time.Time       // when it was, zero while there is one
}

// all are the channels of this process. Opening or closing one looks at no other, but for
// the few that lost their root.
var all struct {
	mu       sync.Mutex
	next     uint64
	channels map[*Channel]struct{}
	rootless []*Channel // those that lost their root, in that order
}

// New returns a channel that is known until both its sources and its root are gone;
// sources, which may be nil, must not wait for long. It returns nil where nothing is on.
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

// Note notes an event.
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

// Attach notes the policy at the top of the channel, and gRPC's own record of it. What
// was known of the same channel before it was idle is forgotten.
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

// Retire notes that the root was closed, and what it looked like last.
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
	if len(all.rootless) > 2*mostIdle { // not at each, so that one costs little
		prune()
	}
}

// Stop notes that there are no sources any more. What was wrong with them then is shown as
// what was wrong last: nobody asks them now.
func (c *Channel) Stop() {
	if c == nil {
		return
	}
	c.mu.Lock()
	if c.sources != nil {
		ask := c.sources
		c.mu.Unlock()
		last := slices.Clone(ask()) // it takes a lock of its own, and who has asked before may still read it
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

// gone returns whether there is nothing left to show, because the channel was closed, or was
// idle for too long. all.mu is held.
func (c *Channel) gone(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.root == nil && c.sources == nil && (c.closed.IsZero() || now.Sub(c.closed) > idleFor || IsClosed(c.owner))
}

// forgetIfGone forgets the channel if nothing is left to show. all.mu is held.
func (c *Channel) forgetIfGone() {
	if c.gone(time.Now()) {
		forget(func(other *Channel) bool { return other == c })
		delete(all.channels, c) // it may never have had a root
	}
}

// forget forgets those of the rootless channels for which is returns true, and takes those
// that have a root again from their list. all.mu is held.
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

// prune forgets channels that are gone, and where too many are idle those that became so
// first. all.mu is held.
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

// isIdle reports whether the channel has lost its policy and was not closed.
func (c *Channel) isIdle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closed.IsZero() && !IsClosed(c.owner)
}

// View is what is known of a channel at one moment.
type View struct {
	*Channel
	Root    any // nil while there is none
	Owner   any
	Tree    any       // of the last root, where there is none now
	Closed  time.Time // when that was closed
	Sources []Source
	Events  []Event // the oldest first
}

// Channels returns what is known of all channels, the oldest first.
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
