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

// lastGood stores the last good answers of sources. gRPC closes the resolver of an idle channel. If
// the source fails when the channel is used again, the stored answer is used. The same holds if a list
// of mechanisms gives a name another source. An answer is stored while a source with its key is
// running, and then for an hour after its last confirmation. Of the answers without a running source,
// the store has at most 1,000 and 64 MiB, and drops those first whose sources stopped first. Callers
// pass the current time.
var lastGood answerStore

const (
	// keepFor is the time for which an answer is used after its last confirmation.
	keepFor    = time.Hour
	maxEntries = 1000
	maxBytes   = 64 << 20
)

// sizeOf returns the approximate size of k in bytes, including the sources that report a size.
func sizeOf(k core.Kept) int {
	const mechanismSize = 100
	n := mechanismSize*len(k.List) + lookupsOf(k.Answer).size()
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

// answerStore holds answers by key. It stores nothing under the key nil. The zero value is empty.
// It is safe for concurrent use.
type answerStore struct {
	mu      sync.Mutex
	entries map[any]*entry
	idle    list.List // *entry values without a running source; the latest is first
	bytes   int       // of the idle entries
}

type entry struct {
	key any
	core.Kept
	running int           // number of running sources with the key
	idle    *list.Element // nil while a source is running
	size    int           // while it is idle
}

// started records that a source whose answers have the given key was started. It must precede keep
// and confirm. The answer does not expire until stopped is called, because the source may confirm it at
// any time, even after days.
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
		s.bytes -= e.size
		s.idle.Remove(e.idle)
		e.idle = nil
	}
}

// stopped records that a source was closed.
func (s *answerStore) stopped(key any, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key]
	if e.running--; e.running > 0 {
		return
	}
	if e.size = sizeOf(e.Kept); e.size == 0 || e.size > maxBytes {
		delete(s.entries, key)
		return
	}
	e.idle = s.idle.PushFront(e)
	s.bytes += e.size
	for oldest := s.idle.Back(); oldest != nil; {
		e := oldest.Value.(*entry)
		oldest = oldest.Prev()
		if s.idle.Len() > maxEntries || s.bytes > maxBytes || now.Sub(e.Confirmed) > keepFor {
			s.bytes -= e.size
			s.idle.Remove(e.idle)
			delete(s.entries, e.key)
		}
	}
}

// keep stores an answer with the time of its confirmation. It replaces the previous answer.
func (s *answerStore) keep(key any, k core.Kept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key != nil {
		s.entries[key].Kept = k
	}
}

// confirm records that the answer under key was valid at the given time. The Names of a may be newer
// than those of the stored answer.
func (s *answerStore) confirm(key any, a core.Answer, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key]
	if at.Before(e.Confirmed) {
		return
	}
	e.Confirmed = at
	one, _ := e.Answer.Content.(*topology.Checked)
	two, _ := a.Content.(*topology.Checked)
	if one != nil && two != nil && topology.Equal(one.Answer, two.Answer) {
		e.Answer.Names = a.Names
	}
}

// get returns what is stored under key. Each of its Names has the time of its own confirmation. What
// was confirmed before earliest is omitted.
func (s *answerStore) get(key any, earliest time.Time) (core.Kept, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key]
	if e == nil || e.Answer.Content == nil && e.List == nil || e.Confirmed.Before(earliest) {
		return core.Kept{}, false
	}
	k := e.Kept
	k.Answer.Names = lookupsOf(k.Answer).since(earliest, k.Confirmed)
	return k, true
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
