// Package lastgood stores the last good answers of sources while channels are idle. gRPC closes the
// resolver of an idle channel. If the source fails when the channel is used again, the stored
// answer is used. An answer is stored for an hour after its last confirmation by the source, and
// longer while a running source may still confirm it. The store has at most 1,000 answers and 64
// MiB. Callers pass the current time.
package lastgood

import (
	"container/list"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/topology"
)

const (
	// For is how long an answer is stored after its last confirmation.
	For         = time.Hour
	keptEntries = 1000
	keptBytes   = 64 << 20
)

// Said is what a source last sent: an answer or a list of discovery mechanisms. It must not be
// modified.
type Said struct {
	Answer *topology.Checked
	Parts  []discovery.Mechanism
	Names  Names // lookups that the answer was made from; ignored by equal
}

// equal reports whether s and other are known to be the same answer. If it returns false, they may
// be equal nevertheless.
func (s Said) equal(other Said) bool {
	if s.Answer == nil || other.Answer == nil {
		return s.Answer == other.Answer
	}
	return topology.Equal(s.Answer.Answer, other.Answer.Answer)
}

// size returns the approximate size of s in bytes. It never changes for a given s. It includes the
// sources that report a size.
func (s Said) size() int {
	const part = 100
	n := part*len(s.Parts) + s.Names.size()
	if s.Answer != nil {
		n += s.Answer.Size
	}
	for _, p := range s.Parts {
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
	order   list.List // of type *entry; the latest confirmation is first
	bytes   int
	atWork  map[any]int // number of running sources for each key
}

type entry struct {
	key       any
	said      Said
	confirmed time.Time
}

// Begin records that a source with answers under key was started. Until End, its answers do not
// expire, because a source that has been silent for days may still confirm them.
func (s *Store) Begin(key any) {
	if key == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.atWork == nil {
		s.atWork = make(map[any]int)
	}
	s.atWork[key]++
}

// End records that a source for which Begin was called was closed.
func (s *Store) End(key any) {
	if key == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.atWork[key]--; s.atWork[key] <= 0 {
		delete(s.atWork, key)
	}
}

// AtWork returns the number of keys that have at least one running source.
func (s *Store) AtWork() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.atWork)
}

// Put stores an answer and the time of its confirmation. It removes the previous answer, even if
// the new one is too large for the store.
func (s *Store) Put(key any, what Said, at time.Time) {
	if key == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries == nil {
		s.entries = make(map[any]*list.Element)
	}
	if old, ok := s.entries[key]; ok {
		s.remove(old)
	}
	if what.size() > keptBytes {
		return
	}
	s.entries[key] = s.order.PushFront(&entry{key, what, at})
	s.bytes += what.size()
	s.makeRoom(at)
}

// makeRoom removes expired answers. If the store is still too full, it removes those with the
// oldest confirmation, but answers of running sources last. The caller holds mu.
func (s *Store) makeRoom(now time.Time) {
	for last := s.order.Back(); last != nil && (s.full() || expired(last, now)); {
		e := last
		last = last.Prev()
		if s.atWork[e.Value.(*entry).key] == 0 {
			s.remove(e)
		}
	}
	for s.full() {
		s.remove(s.order.Back())
	}
}

func (s *Store) full() bool { return s.bytes > keptBytes || len(s.entries) > keptEntries }

// Confirm records that the answer under key was valid at the given time.
func (s *Store) Confirm(key any, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.entries[key]; ok && !at.Before(e.Value.(*entry).confirmed) {
		e.Value.(*entry).confirmed = at
		s.order.MoveToFront(e)
	}
}

// Renew is like Confirm for the answer what. If the store no longer has that answer and there is
// room, Renew stores it again. what may have newer Names than the stored answer.
func (s *Store) Renew(key any, what Said, at time.Time) {
	s.mu.Lock()
	s.makeRoom(at)
	e, there := s.entries[key]
	if there {
		old := e.Value.(*entry)
		s.bytes -= old.said.size()
		if old.said.equal(what) {
			old.said.Names = what.Names.orLater(old.said.Names, old.confirmed)
		} else {
			old.said.Names = old.said.Names.orLater(what.Names, at)
		}
		s.bytes += old.said.size()
	}
	room := len(s.entries) < keptEntries && s.bytes+what.size() <= keptBytes
	s.mu.Unlock()
	if !there && room {
		s.Put(key, what, at)
	} else {
		s.Confirm(key, at)
	}
}

// Get returns the answer under key, and the time since its last confirmation.
func (s *Store) Get(key any, now time.Time) (Said, time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[key]
	if !ok {
		return Said{}, 0, false
	}
	if expired(e, now) {
		if s.atWork[key] == 0 { // while a source is running, it may still confirm the answer, so the answer does not expire
			s.remove(e)
		}
		return Said{}, 0, false
	}
	kept := e.Value.(*entry)
	return kept.said, now.Sub(kept.confirmed), true
}

func expired(e *list.Element, now time.Time) bool {
	return now.Sub(e.Value.(*entry).confirmed) > For
}

func (s *Store) remove(e *list.Element) {
	kept := s.order.Remove(e).(*entry)
	delete(s.entries, kept.key)
	s.bytes -= kept.said.size()
}
