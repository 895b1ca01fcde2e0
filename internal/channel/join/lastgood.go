package join

import (
	"cmp"
	"container/list"
	"maps"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	core "github.com/understudy-lb/understudy/internal/core/join"
)

// lastGood has the last good answers. gRPC closes the resolver when a channel goes idle, so if the
// source is down by the time the channel wakes up again, we use the answer in here. We keep an
// answer while a source with its key is running, and for another hour after it was last confirmed.
// A source that pushes its answers may have sent the last one days ago, but it confirms that answer
// for as long as it doesn't fail.
// We keep at most 1,000 answers without a running source, with at most 200,000 endpoints in total.
// If there are more, we drop those whose sources stopped first.
var lastGood = answerStore{entries: make(map[any]*storedAnswer)}

const (
	keepFor    = time.Hour // how long an answer is good for after it was last confirmed
	maxEntries = 1000
	maxSize    = 200_000
)

// sizeOf counts endpoints, DNS names and mechanisms. Sources may report a size too.
func sizeOf(k core.Kept) int {
	n := len(k.List) + len(lookupsOf(k.Answer))
	if c, _ := k.Answer.Content.(*topology.Checked); c != nil {
		n += topology.Size(c.Answer)
	}
	for _, m := range k.List {
		if sized, ok := m.Source.(interface{ Size() int }); ok {
			n += sized.Size()
		}
	}
	return n
}

// answerStore is safe for concurrent use. Nothing is stored for a nil key.
type answerStore struct {
	mu      sync.Mutex
	entries map[any]*storedAnswer
	idle    list.List // *entry values without a running source, latest first
	size    int       // sum over the idle entries
}

type storedAnswer struct {
	key any
	core.Kept
	running int                           // number of running sources with this key
	current map[*source]*topology.Checked // those that gave this answer, and from which we would have heard of any change
	idle    *list.Element                 // nil while a source is running
	size    int                           // only valid while idle
}

func (e *storedAnswer) isEmpty() bool { return e.Answer.Content == nil && e.List == nil }

// acquire must be called before keep and confirm. From here until release, the answer can't expire,
// because the source may confirm it at any time, even after days.
func (s *answerStore) acquire(key any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key]
	if e == nil {
		e = &storedAnswer{key: key, current: make(map[*source]*topology.Checked)}
		s.entries[key] = e
	}
	if e.running++; e.idle != nil {
		s.size -= e.size
		s.idle.Remove(e.idle)
		e.idle = nil
	}
}

func (s *answerStore) release(key any, now time.Time) {
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
		e := oldest.Value.(*storedAnswer)
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
	if key == nil {
		return
	}
	e := s.entries[key]
	e.Kept = k
	now, _ := k.Answer.Content.(*topology.Checked)
	maps.DeleteFunc(e.current, func(_ *source, c *topology.Checked) bool {
		return c != now && (c == nil || now == nil || !topology.Equal(c.Given, now.Given))
	})
}

// confirm also confirms the DNS lookups behind the answer. If two channels have looked up the same
// name, we keep the later lookup. If current is set, the answer stays confirmed until the next call for
// the same source, or until its channel closes.
func (s *answerStore) confirm(key any, a core.Answer, at time.Time, by *source, current bool) {
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
	if delete(e.current, by); current {
		e.current[by], _ = a.Content.(*topology.Checked)
	}
}

// get returns nothing that was last confirmed longer than maxAge ago. That goes for each of the Names,
// too.
func (s *answerStore) get(key any, now time.Time, maxAge time.Duration) (core.Kept, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, earliest := s.entries[key], now.Add(-maxAge)
	if e == nil {
		return core.Kept{}, false
	}
	for by := range e.current {
		if at := cmp.Or(by.join.closed.Load(), &now); at.After(e.Confirmed) && !by.ownTime.Load() {
			e.Confirmed = *at
		}
	}
	if e.isEmpty() || e.Confirmed.Before(earliest) {
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

// If we don't know when a name was confirmed, we assume fallback.
func (n lookups) since(earliest, fallback time.Time) lookups {
	n = maps.Clone(n)
	for name, lookup := range n {
		lookup.Until = cmp.Or(lookup.Until, fallback)
		if n[name] = lookup; lookup.Until.Before(earliest) {
			delete(n, name)
		}
	}
	return n
}
