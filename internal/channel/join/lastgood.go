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

// gRPC closes the resolver of an idle channel. If the source fails when the channel is used again,
// we use the last good answer, which we keep here. The same holds if a list of mechanisms gives a
// name another source. We store an answer while a source with its key is running, and then for an
// hour after its last confirmation. Without a running source, there are at most 1,000 answers with
// 200,000 endpoints; those whose sources stopped first go first. Callers pass the current time.
var lastGood answerStore

const (
	// We use an answer for so long after its last confirmation.
	keepFor    = time.Hour
	maxEntries = 1000
	maxSize    = 200_000
)

// This counts endpoints, DNS names and mechanisms, including those of sources that report a size.
func sizeOf(k core.Kept) int {
	n := len(k.List) + len(lookupsOf(k.Answer))
	if c, _ := k.Answer.Content.(*topology.Checked); c != nil {
		n += topology.Size(c.Answer)
	}
	for _, p := range k.List {
		if sized, ok := p.Given.(*Mechanism).Source.(interface{ Size() int }); ok {
			n += sized.Size()
		}
	}
	return n
}

// The key nil stores nothing. The zero value is empty. It is safe for concurrent use.
type answerStore struct {
	mu      sync.Mutex
	entries map[any]*entry
	idle    list.List // *entry values without a running source; the latest is first
	size    int       // of the idle entries
}

type entry struct {
	key any
	core.Kept
	running int           // number of running sources with the key
	idle    *list.Element // nil while a source is running
	size    int           // while it is idle
}

func (e *entry) isEmpty() bool { return e.Answer.Content == nil && e.List == nil }

// This must precede keep and confirm. The answer does not expire before stopped: the source may
// confirm it at any time, even after days.
func (s *answerStore) started(key any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries == nil {
		s.entries = make(map[any]*entry)
	}
	e := s.entries[key]
	if e == nil {
		e = &entry{key: key}
		s.entries[key] = e
	}
	if e.running++; e.idle != nil {
		s.size -= e.size
		s.idle.Remove(e.idle)
		e.idle = nil
	}
}

func (s *answerStore) stopped(key any, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key]
	if e.running--; e.running > 0 {
		return
	}
	if e.size = sizeOf(e.Kept); e.isEmpty() || e.size > maxSize {
		delete(s.entries, key)
		return
	}
	e.idle = s.idle.PushFront(e)
	s.size += e.size
	for oldest := s.idle.Back(); oldest != nil; {
		e := oldest.Value.(*entry)
		oldest = oldest.Prev()
		if s.idle.Len() > maxEntries || s.size > maxSize || now.Sub(e.Confirmed) > keepFor {
			s.size -= e.size
			s.idle.Remove(e.idle)
			delete(s.entries, e.key)
		}
	}
}

func (s *answerStore) keep(key any, k core.Kept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key != nil {
		s.entries[key].Kept = k
	}
}

// The lookups from which a was made are confirmed, too. Of two lookups of a name, which may come
// from two channels, we keep the later.
func (s *answerStore) confirm(key any, a core.Answer, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, names := s.entries[key], make(lookups)
	for _, known := range []lookups{lookupsOf(e.Answer).since(time.Time{}, e.Confirmed), lookupsOf(a).since(time.Time{}, at)} {
		for name, lookup := range known {
			if !lookup.Until.Before(names[name].Until) {
				names[name] = lookup
			}
		}
	}
	if e.Answer.Names = names; at.After(e.Confirmed) {
		e.Confirmed = at
	}
}

// We leave out what was confirmed before earliest. Each of the Names has a time of its own.
func (s *answerStore) get(key any, earliest time.Time) (core.Kept, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key]
	if e == nil || e.isEmpty() || e.Confirmed.Before(earliest) {
		return core.Kept{}, false
	}
	k := e.Kept
	k.Answer.Names = lookupsOf(k.Answer).since(earliest, k.Confirmed)
	return k, true
}

type lookups map[string]discovery.Name

func lookupsOf(a core.Answer) lookups {
	n, _ := a.Names.(lookups)
	return n
}

// A name without a time counts as confirmed at fallback.
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
