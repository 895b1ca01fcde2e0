package join

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	core "github.com/understudy-lb/understudy/internal/core/join"
)

func contentOf(a *discovery.Answer) core.Answer {
	return core.Answer{Content: &topology.Checked{Answer: a}}
}

func contentOfSize(endpoints int) core.Answer {
	return contentOf(&discovery.Answer{Resolved: make([]resolver.Endpoint, endpoints)})
}

const minSize = 1

// run stores the answer of a source that starts and stops.
func (s *answerStore) run(key any, k core.Kept) {
	s.acquire(key)
	s.keep(key, k)
	s.release(key, k.Confirmed)
}

func storedKeys(s *answerStore, n int, now time.Time) string {
	var keys []string
	for key := range n {
		if _, ok := s.get(key, now, keepFor); ok {
			keys = append(keys, fmt.Sprint(key))
		}
	}
	return strings.Join(keys, " ")
}

func TestMaxEntries(t *testing.T) {
	s := answerStore{entries: make(map[any]*storedAnswer)}
	now := time.Unix(0, 0)
	for key := range maxEntries + 3 {
		s.run(key, core.Kept{Answer: contentOfSize(minSize), Confirmed: now})
		s.acquire(0) // key 0 is now the last whose source stopped
		s.release(0, now)
	}
	if maxEntries != 1000 || maxSize != 200_000 {
		t.Error("docs/limits.md has other limits")
	}
	if len(s.entries) != maxEntries || s.idle.Len() != maxEntries || s.size != maxEntries*minSize {
		t.Errorf("%d entries of %d endpoints are kept, want %d", len(s.entries), s.size, maxEntries)
	}
	if got := storedKeys(&s, 5, now); got != "0 4" {
		t.Errorf("of the first five %s are kept, want the one whose source ran again, and the last", got)
	}
}

func TestMaxSize(t *testing.T) {
	s := answerStore{entries: make(map[any]*storedAnswer)}
	now := time.Unix(0, 0)
	for key := range 5 {
		s.run(key, core.Kept{Answer: contentOfSize(maxSize / 4), Confirmed: now})
	}
	if got := storedKeys(&s, 5, now); got != "1 2 3 4" || s.size != maxSize {
		t.Errorf("%s are kept, %d endpoints; want the last four", got, s.size)
	}
	s.run(9, core.Kept{Answer: contentOfSize(maxSize + 1), Confirmed: now})
	s.run(4, core.Kept{Answer: contentOfSize(minSize), Confirmed: now})
	s.run(8, core.Kept{})
	if got := storedKeys(&s, 10, now); got != "1 2 3 4" || s.size != 3*maxSize/4+minSize || len(s.entries) != 4 {
		t.Errorf("%s are kept, %d endpoints; want no answer that is too large, and the new size", got, s.size)
	}
}

func TestAnswersExpire(t *testing.T) {
	s := answerStore{entries: make(map[any]*storedAnswer)}
	start := time.Unix(0, 0)
	s.run(nil, core.Kept{Answer: contentOfSize(minSize), Confirmed: start})
	for key := range 2 {
		s.acquire(key)
		s.keep(key, core.Kept{Answer: contentOfSize(minSize), Confirmed: start})
	}
	s.confirm(1, core.Answer{}, start.Add(30*time.Minute), nil, false)
	s.confirm(1, core.Answer{}, start, nil, false)
	s.release(0, start)
	s.release(1, start)
	if k, ok := s.get(0, start.Add(keepFor), keepFor); !ok || !k.Confirmed.Equal(start) {
		t.Errorf("after an hour: confirmed at %v, kept %v", k.Confirmed, ok)
	}
	for _, key := range []any{0, 2, nil} {
		if k, ok := s.get(key, start.Add(61*time.Minute), keepFor); ok || k.Answer.Content != nil {
			t.Errorf("key %v after 61 minutes: %v, kept %v; want nothing", key, k, ok)
		}
	}
	if got := storedKeys(&s, 3, start.Add(90*time.Minute)); got != "1" {
		t.Errorf("after 90 minutes %s are kept, want 1", got)
	}
	s.run(2, core.Kept{Answer: contentOfSize(minSize), Confirmed: start.Add(90 * time.Minute)})
	if len(s.entries) != 2 || s.size != 2*minSize {
		t.Errorf("%d entries of %d endpoints are kept, want two", len(s.entries), s.size)
	}
}

// The answer of a running source is not dropped, because the source may still confirm it, and because
// a source that succeeds it may need it. It does not count towards the limits of the store.
func TestAnswersOfRunningSourcesAreNotDropped(t *testing.T) {
	s := answerStore{entries: make(map[any]*storedAnswer)}
	start := time.Unix(0, 0)
	for key := range 3 {
		s.acquire(key)
		s.acquire(key)
		s.keep(key, core.Kept{Answer: contentOfSize(minSize), Confirmed: start})
	}
	s.release(1, start)
	s.release(1, start)
	s.release(2, start)
	two := start.Add(2 * time.Hour)
	for key := range maxEntries {
		s.run(10+key, core.Kept{Answer: contentOfSize(minSize), Confirmed: two})
		s.acquire(2000 + key)
		s.keep(2000+key, core.Kept{Answer: contentOfSize(minSize), Confirmed: two})
	}
	if len(s.entries) != 2*maxEntries+2 {
		t.Errorf("%d entries are kept, want the limit, and those of running sources", len(s.entries))
	}
	if got := storedKeys(&s, 3, two); got != "" {
		t.Errorf("%s are returned two hours after they were confirmed, want none", got)
	}
	if got := storedKeys(&s, 3, start); got != "0 2" {
		t.Errorf("%s are returned for successors, want those with a running source", got)
	}
	s.confirm(0, core.Answer{}, two, nil, false)
	if got := storedKeys(&s, 3, two); got != "0" {
		t.Errorf("%s are returned after a confirmation, want 0", got)
	}
	for key := range maxEntries {
		s.release(2000+key, two)
	}
	if len(s.entries) != maxEntries+2 || s.size != maxEntries*minSize {
		t.Errorf("%d entries are kept after the sources were stopped, %d endpoints count; want the limit", len(s.entries), s.size)
	}
}

type sized struct{ discovery.Source }

func (sized) Size() int { return 5000 }

func TestSize(t *testing.T) {
	content := contentOfSize(7)
	content.Names = lookups{"ab": {Addresses: []string{"10.0.0.1", "::1"}}, "c": {}}
	if got, want := sizeOf(core.Kept{Answer: content}), 7+2; got != want {
		t.Errorf("an answer with names has the size %d, want %d", got, want)
	}
	list := core.Kept{List: []core.Mechanism{{}, {Source: sized{}}}}
	if got, want := sizeOf(list), 2+5000; got != want {
		t.Errorf("two mechanisms have the size %d, want %d", got, want)
	}
}

// Each name has its own time of confirmation, so that names can change while the answer stays the
// same.
func TestNamesExpireSeparately(t *testing.T) {
	s := answerStore{entries: make(map[any]*storedAnswer)}
	start := time.Unix(0, 0)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	content := contentOfSize(minSize)
	content.Names = lookups{"a": {Addresses: []string{"10.0.0.1"}}, "b": {Addresses: []string{"10.0.0.2"}}}
	s.acquire(0)
	s.keep(0, core.Kept{Answer: content, Confirmed: start})
	content.Names = lookups{"a": {Addresses: []string{"10.0.0.1"}}, "b": {Addresses: []string{"10.0.0.2"}, Until: at(10)}}
	s.confirm(0, content, at(30), nil, false)
	other := contentOfSize(minSize + 1)
	s.confirm(0, other, at(30), nil, false)
	for minutes, want := range map[int]string{70: "map[a:30 b:10]", 71: "map[a:30]", 90: "map[a:30]", 91: "map[]"} {
		known, _ := s.get(0, at(minutes), keepFor)
		left := make(map[string]int)
		for name, n := range lookupsOf(known.Answer) {
			left[name] = int(n.Until.Sub(start).Minutes())
		}
		if got := fmt.Sprint(left); got != want {
			t.Errorf("after %d minutes names are %s, want %s", minutes, got, want)
		}
	}
}

// If two channels have the same target, the store must keep the later lookup of each name.
func TestLaterLookupIsKept(t *testing.T) {
	start := time.Unix(0, 0)
	name := func(address string, until int) discovery.Name {
		n := discovery.Name{Addresses: []string{address}}
		if until > 0 {
			n.Until = start.Add(time.Duration(until) * time.Minute)
		}
		return n
	}
	for about, test := range map[string]struct {
		kept, said discovery.Name
		want       string
		until      int
	}{
		"both lost it":             {name("a", 10), name("b", 5), "a", 10},
		"the same moment":          {name("a", 10), name("b", 10), "b", 10},
		"one has lost it since":    {name("a", 0), name("b", 40), "b", 40},
		"one had lost it before":   {name("a", 0), name("b", 20), "a", 30},
		"it can be looked up now":  {name("a", 0), name("b", 0), "b", 45},
		"it can be looked up anew": {name("a", 10), name("b", 0), "b", 45},
	} {
		s := answerStore{entries: make(map[any]*storedAnswer)}
		kept, said := contentOfSize(1), contentOfSize(1)
		kept.Names, said.Names = lookups{"x": test.kept}, lookups{"x": test.said}
		s.acquire(0)
		s.keep(0, core.Kept{Answer: kept, Confirmed: start.Add(30 * time.Minute)})
		s.confirm(0, said, start.Add(45*time.Minute), nil, false)
		k, _ := s.get(0, start, keepFor)
		if got := lookupsOf(k.Answer)["x"]; got.Addresses[0] != test.want || got.Until.Sub(start).Minutes() != float64(test.until) {
			t.Errorf("%s: there is %v, want %s until %d", about, got, test.want, test.until)
		}
		if fmt.Sprint(kept.Names, said.Names) != fmt.Sprint(lookups{"x": test.kept}, lookups{"x": test.said}) {
			t.Errorf("%s: the names that were given have changed", about)
		}
	}
}
