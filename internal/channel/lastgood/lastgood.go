// Package lastgood stores the last good answers of sources while channels are idle. gRPC closes the
// resolver of an idle channel. If the source fails when the channel is used again, the stored
// answer is used. The same holds if a list of mechanisms gives a name another source. An answer is
// stored for an hour after its last confirmation by the source, and longer while a running source may
// still confirm it. The store has at most 1,000 answers and 64
// MiB. Callers pass the current time.
package lastgood

import (
	"container/list"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
)

const (
	// For is the time for which an answer is stored after its last confirmation.
	For        = time.Hour
	maxEntries = 1000
	maxBytes   = 64 << 20
)

// Content is the last content from a source: an answer or a list of discovery mechanisms. It must
// not be modified.
type Content struct {
	Answer *topology.Checked
	List   []discovery.Mechanism
	Names  Names // results of the lookups behind the answer; ignored by equal
}

// equal reports whether c and other are certainly the same answer. They may be the same even if it
// returns false.
func (c Content) equal(other Content) bool {
	if c.Answer == nil || other.Answer == nil {
		return c.Answer == other.Answer
	}
	return topology.Equal(c.Answer.Answer, other.Answer.Answer)
}

// size returns the approximate size of c in bytes, including the sources that report a size. The
// size of a value never changes.
func (c Content) size() int {
	const mechanismSize = 100
	n := mechanismSize*len(c.List) + c.Names.size()
	if c.Answer != nil {
		n += c.Answer.Size
	}
	for _, p := range c.List {
		if sized, ok := p.Source.(interface{ Size() int }); ok {
			n += sized.Size()
		}
	}
	return n
}

// Process is the store of this process.
var Process Store

// Store holds answers by key. It stores nothing under the key nil. The zero value is empty. A Store
// is safe for concurrent use.
type Store struct {
	mu      sync.Mutex
	entries map[any]*list.Element
	order   list.List // *entry values; the latest confirmation is first
	bytes   int
	running map[any]int // number of running sources for each key
}

type entry struct {
	key       any
	content   Content
	confirmed time.Time
}

// Begin records that a source whose answers have the given key was started. Until End is called,
// its answers do not expire, because the source may confirm an answer at any time, even after days.
func (s *Store) Begin(key any) {
	if key == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		s.running = make(map[any]int)
	}
	s.running[key]++
}

// End records that a source was closed. It must be called once for each call of Begin.
func (s *Store) End(key any) {
	if key == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[key]--; s.running[key] <= 0 {
		delete(s.running, key)
	}
}

// AtWork returns the number of keys that have at least one running source.
func (s *Store) AtWork() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running)
}

// Put stores an answer with the time of its confirmation. The previous answer is removed, even if
// the new one is too large for the store.
func (s *Store) Put(key any, content Content, at time.Time) {
	if key == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(key, content, at)
}

// put implements Put. The caller must hold mu.
func (s *Store) put(key any, content Content, at time.Time) {
	if s.entries == nil {
		s.entries = make(map[any]*list.Element)
	}
	if old, ok := s.entries[key]; ok {
		s.remove(old)
	}
	if content.size() > maxBytes {
		return
	}
	s.entries[key] = s.order.PushFront(&entry{key, content, at})
	s.bytes += content.size()
	s.makeRoom(at)
}

// makeRoom removes expired answers. If the store still exceeds its limits, makeRoom also removes
// the answers with the oldest confirmations. Answers of running sources are removed last. The
// caller must hold mu.
func (s *Store) makeRoom(now time.Time) {
	for last := s.order.Back(); last != nil && (s.overLimit() || expired(last, now)); {
		e := last
		last = last.Prev()
		if s.running[e.Value.(*entry).key] == 0 {
			s.remove(e)
		}
	}
	for s.overLimit() {
		s.remove(s.order.Back())
	}
}

func (s *Store) overLimit() bool { return s.bytes > maxBytes || len(s.entries) > maxEntries }

// Confirm records that the answer under key was valid at the given time. If the store has no answer
// under key, there is space, and content has an answer, Confirm stores content again. The Names of
// content may be newer than those of the stored answer.
func (s *Store) Confirm(key any, content Content, at time.Time) {
	if key == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeRoom(at)
	e, found := s.entries[key]
	if !found {
		if content.Answer != nil && len(s.entries) < maxEntries && s.bytes+content.size() <= maxBytes {
			s.put(key, content, at)
		}
		return
	}
	old := e.Value.(*entry)
	s.bytes -= old.content.size()
	switch {
	case content.Answer == nil:
	case old.content.equal(content):
		old.content.Names = content.Names.mergeLater(old.content.Names, old.confirmed)
	default:
		old.content.Names = old.content.Names.mergeLater(content.Names, at)
	}
	s.bytes += old.content.size()
	if !at.Before(old.confirmed) {
		old.confirmed = at
		s.order.MoveToFront(e)
	}
}

// Get returns the answer under key, and the time since its last confirmation. Each of its Names has
// the time of its own confirmation. What was confirmed over an hour ago is omitted, unless a second
// source with the key is running: the first is that of the caller, and the second still uses the
// answer.
func (s *Store) Get(key any, now time.Time) (Content, time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[key]
	if !ok {
		return Content{}, 0, false
	}
	var earliest time.Time
	if s.running[key] < 2 {
		earliest = now.Add(-For)
		if expired(e, now) {
			if s.running[key] == 0 { // a running source may still confirm the answer
				s.remove(e)
			}
			return Content{}, 0, false
		}
	}
	stored := e.Value.(*entry)
	content := stored.content
	content.Names = content.Names.Since(earliest, stored.confirmed)
	return content, now.Sub(stored.confirmed), true
}

func expired(e *list.Element, now time.Time) bool {
	return now.Sub(e.Value.(*entry).confirmed) > For
}

func (s *Store) remove(e *list.Element) {
	stored := s.order.Remove(e).(*entry)
	delete(s.entries, stored.key)
	s.bytes -= stored.content.size()
}
