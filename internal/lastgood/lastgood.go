// Package lastgood keeps the last good answers of sources while channels are idle (gRPC closes their
// resolvers then), for the time when a source fails before it has answered again. Times are
// inputs. An answer is kept for an hour after its source last confirmed it, or as long as a source
// at work may confirm it yet; there are at most 1,000, of 64 MiB together.
package lastgood

import (
	"container/list"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/topology"
)

// The limits on answers that are kept while channels are idle.
const (
	// For is how long an answer is kept since its source last confirmed it.
	For         = time.Hour
	keptEntries = 1000
	keptBytes   = 64 << 20
)

// Said is what a source said: an answer or, in its place, a list of parts. Nobody changes it.
type Said struct {
	Answer *topology.Checked
	Parts  []discovery.Mechanism
	Names  Names // of which the answer is made, if that is known; they are not compared
}

// equal reports whether s and other are known to give the same answer.
func (s Said) equal(other Said) bool {
	if s.Answer == nil || other.Answer == nil {
		return s.Answer == other.Answer
	}
	return topology.Equal(s.Answer.Answer, other.Answer.Answer)
}

// size returns about how many bytes s takes, with the sources of parts that say how much
// they do. It is always the same.
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

// Store keeps answers by key. The zero value is empty. It is safe for concurrent use.
// It keeps nothing under the key nil.
type Store struct {
	mu      sync.Mutex
	entries map[any]*list.Element
	order   list.List // of entry, the one confirmed last in front
	bytes   int
	atWork  map[any]int // how many sources are, by the key of their answers
}

type entry struct {
	key       any
	said      Said
	confirmed time.Time
}

// Begin notes that a source is at work whose answers are kept under key. It may say nothing
// for days: they do not expire before it ends.
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

// End notes that such a source has ended.
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

// AtWork returns how many keys there are whose sources are at work.
func (s *Store) AtWork() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.atWork)
}

// Put keeps an answer of the given time, in place of the one before. One that is too
// large takes that one out: it would pass for confirmed.
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

// makeRoom forgets what has expired and what is too much, at first where no source is at work.
// The lock is held.
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

// Confirm notes that the answer under key still held at the given time.
func (s *Store) Confirm(key any, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.entries[key]; ok && !at.Before(e.Value.(*entry).confirmed) {
		e.Value.(*entry).confirmed = at
		s.order.MoveToFront(e)
	}
}

// Renew is Confirm for an answer that may have had to make room. It is kept again where there
// is some. Its names may have changed.
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

// Get returns the answer under key, and how long ago it was confirmed.
func (s *Store) Get(key any, now time.Time) (Said, time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[key]
	if !ok {
		return Said{}, 0, false
	}
	if expired(e, now) {
		if s.atWork[key] == 0 { // else it may be confirmed yet
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

// remove forgets an entry. The lock is held.
func (s *Store) remove(e *list.Element) {
	kept := s.order.Remove(e).(*entry)
	delete(s.entries, kept.key)
	s.bytes -= kept.said.size()
}
