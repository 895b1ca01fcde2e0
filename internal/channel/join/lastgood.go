package join

import (
	"container/list"
	"maps"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	core "github.com/understudy-lb/understudy/internal/core/join"
)

// lastGood stores the last good answers of sources while channels are idle. gRPC closes the resolver
// of an idle channel. If the source fails when the channel is used again, the stored answer is used.
// The same holds if a list of mechanisms gives a name another source. An answer is stored for an hour
// after its last confirmation by the source, and longer while a running source may still confirm it.
// The store has at most 1,000 answers and 64 MiB, not counting those of running sources, which use
// them anyway: the source that replaces a running one may need its answer at any time. Callers pass
// the current time.
var lastGood answerStore

const (
	// keepFor is the time for which an answer is stored after its last confirmation.
	keepFor    = time.Hour
	maxEntries = 1000
	maxBytes   = 64 << 20
)

// equal reports whether two answers are certainly the same. They may be the same even if it returns
// false. It ignores the Names.
func equal(a, other core.Answer) bool {
	one, _ := a.Content.(*topology.Checked)
	two, _ := other.Content.(*topology.Checked)
	return one == two || one != nil && two != nil && topology.Equal(one.Answer, two.Answer)
}

// sizeOf returns the approximate size of k in bytes, including the sources that report a size. The
// size of a value never changes.
func sizeOf(k core.Kept) int {
	const mechanismSize = 100
	n := mechanismSize*len(k.List) + lookupsOf(k.Answer).size()
	if c, _ := k.Answer.Content.(*topology.Checked); c != nil {
		n += c.Size
	}
	for _, p := range k.List {
		if sized, ok := p.Given.(*Mechanism).Source.(interface{ Size() int }); ok {
			n += sized.Size()
		}
	}
	return n
}

// answerStore holds answers by key. It stores nothing under the key nil. The zero value is empty.
// It is safe for concurrent use.
type answerStore struct {
	mu      sync.Mutex
	entries map[any]*list.Element
	order   list.List   // *entry values; the latest confirmation is first
	running map[any]int // number of running sources for each key

	// The following fields count the entries without a running source.
	idle, bytes int
}

type entry struct {
	key any
	core.Kept
}

// addRunning records that n sources whose answers have the given key were started, or closed if n is
// negative. As long as one is running, its answers do not expire, because it may confirm an answer at
// any time, even after days.
func (s *answerStore) addRunning(key any, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		s.running = make(map[any]int)
	}
	s.count(key, -1)
	if s.running[key] += n; s.running[key] == 0 {
		delete(s.running, key)
	}
	s.count(key, 1)
	s.makeRoom(time.Time{})
}

// count adds the entry under key to the limited ones, or subtracts it if n is -1. The caller must
// hold mu.
func (s *answerStore) count(key any, n int) {
	if e, ok := s.entries[key]; ok && s.running[key] == 0 {
		s.idle += n
		s.bytes += n * sizeOf(e.Value.(*entry).Kept)
	}
}

// keep stores an answer with the time of its confirmation. The previous answer is removed, even if
// the new one is too large for the store.
func (s *answerStore) keep(key any, k core.Kept) {
	if key == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(key, k)
}

// put implements keep. The caller must hold mu.
func (s *answerStore) put(key any, k core.Kept) {
	if s.entries == nil {
		s.entries = make(map[any]*list.Element)
	}
	if old, ok := s.entries[key]; ok {
		s.remove(old)
	}
	if sizeOf(k) > maxBytes {
		return
	}
	s.entries[key] = s.order.PushFront(&entry{key, k})
	s.count(key, 1)
	s.makeRoom(k.Confirmed)
}

// makeRoom removes expired answers. If the store still exceeds its limits, makeRoom also removes
// the answers with the oldest confirmations. It removes no answer of a running source. The caller
// must hold mu.
func (s *answerStore) makeRoom(now time.Time) {
	for last := s.order.Back(); last != nil && (s.overLimit() || expired(last, now)); {
		e := last
		last = last.Prev()
		if s.running[e.Value.(*entry).key] == 0 {
			s.remove(e)
		}
	}
}

func (s *answerStore) overLimit() bool { return s.bytes > maxBytes || s.idle > maxEntries }

// confirm records that the answer under key was valid at the given time. If the store has no answer
// under key, there is space, and a has content, confirm stores a again. The Names of a may be newer
// than those of the stored answer.
func (s *answerStore) confirm(key any, a core.Answer, at time.Time) {
	if key == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeRoom(at)
	e, found := s.entries[key]
	if !found {
		k := core.Kept{Answer: a, Confirmed: at}
		if a.Content != nil && s.idle < maxEntries && s.bytes+sizeOf(k) <= maxBytes {
			s.put(key, k)
		}
		return
	}
	old := e.Value.(*entry)
	s.count(key, -1)
	switch before := lookupsOf(old.Answer); {
	case a.Content == nil:
	case equal(old.Answer, a):
		old.Answer.Names = lookupsOf(a).mergeLater(before, old.Confirmed)
	default:
		old.Answer.Names = before.mergeLater(lookupsOf(a), at)
	}
	s.count(key, 1)
	if !at.Before(old.Confirmed) {
		old.Confirmed = at
		s.order.MoveToFront(e)
	}
}

// get returns what is stored under key. Each of its Names has the time of its own confirmation. What
// was confirmed over an hour ago is omitted, unless a second source with the key is running: the
// first is that of the caller, and the second still uses the answer.
func (s *answerStore) get(key any, now time.Time) (core.Kept, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[key]
	if !ok {
		return core.Kept{}, false
	}
	var earliest time.Time
	if s.running[key] < 2 {
		earliest = now.Add(-keepFor)
		if expired(e, now) {
			if s.running[key] == 0 { // a running source may still confirm the answer
				s.remove(e)
			}
			return core.Kept{}, false
		}
	}
	k := e.Value.(*entry).Kept
	k.Answer.Names = lookupsOf(k.Answer).since(earliest, k.Confirmed)
	return k, true
}

func expired(e *list.Element, now time.Time) bool {
	return now.Sub(e.Value.(*entry).Confirmed) > keepFor
}

func (s *answerStore) remove(e *list.Element) {
	key := e.Value.(*entry).key
	s.count(key, -1)
	s.order.Remove(e)
	delete(s.entries, key)
}

// lookups maps each DNS name to the result of its lookup.
type lookups map[string]discovery.Name

func lookupsOf(a core.Answer) lookups {
	n, _ := a.Names.(lookups)
	return n
}

// since returns the names that were confirmed at or after earliest. A name without a time counts as
// confirmed at fallback.
func (n lookups) since(earliest, fallback time.Time) lookups {
	n = maps.Clone(n)
	for name, lookup := range n {
		if lookup.Until.IsZero() {
			lookup.Until = fallback
		}
		if n[name] = lookup; lookup.Until.Before(earliest) {
			delete(n, name)
		}
	}
	return n
}

// mergeLater returns n, with the lookups from other that were confirmed later than those in n. A
// lookup in n without a time is still current. A lookup in other without a time was current until
// confirmed.
func (n lookups) mergeLater(other lookups, confirmed time.Time) lookups {
	n = maps.Clone(n)
	for name, lookup := range other.since(time.Time{}, confirmed) {
		if current := n[name].Until; !current.IsZero() && current.Before(lookup.Until) {
			n[name] = lookup
		}
	}
	return n
}

func (n lookups) size() (bytes int) {
	const name, address = 100, 20
	for key, lookup := range n {
		bytes += name + len(key)
		for _, a := range lookup.Addresses {
			bytes += address + len(a)
		}
	}
	return bytes
}
