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
	return core.Answer{Content: &topology.Checked{Answer: a, Size: topology.Size(a)}}
}

func contentOfSize(bytes int) core.Answer {
	return contentOf(&discovery.Answer{Why: strings.Repeat("x", bytes-minSize)})
}

var minSize = topology.Size(new(discovery.Answer))

func storedKeys(s *answerStore, n int, now time.Time) string {
	var keys []string
	for key := range n {
		if _, ok := s.get(key, now); ok {
			keys = append(keys, fmt.Sprint(key))
		}
	}
	return strings.Join(keys, " ")
}

func TestMaxEntries(t *testing.T) {
	var s answerStore
	now := time.Unix(0, 0)
	for key := range maxEntries + 3 {
		s.keep(key, core.Kept{Answer: contentOfSize(minSize), Confirmed: now})
		s.confirm(0, core.Answer{}, now) // key 0 now has the latest confirmation
	}
	if len(s.entries) != maxEntries || s.order.Len() != maxEntries || s.bytes != maxEntries*minSize {
		t.Errorf("%d entries of %d bytes are kept, want %d", len(s.entries), s.bytes, maxEntries)
	}
	if got := storedKeys(&s, 5, now); got != "0 4" {
		t.Errorf("of the first five %s are kept, want the one that was confirmed, and the last", got)
	}
}

func TestMaxBytes(t *testing.T) {
	var s answerStore
	now := time.Unix(0, 0)
	for key := range 5 {
		s.keep(key, core.Kept{Answer: contentOfSize(maxBytes / 4), Confirmed: now})
	}
	if got := storedKeys(&s, 5, now); got != "1 2 3 4" || s.bytes != maxBytes {
		t.Errorf("%s are kept, %d bytes; want the last four", got, s.bytes)
	}
	s.keep(9, core.Kept{Answer: contentOfSize(maxBytes + 1), Confirmed: now})
	s.keep(4, core.Kept{Answer: contentOfSize(minSize), Confirmed: now})
	if got := storedKeys(&s, 10, now); got != "1 2 3 4" || s.bytes != 3*maxBytes/4+minSize {
		t.Errorf("%s are kept, %d bytes; want no answer that is too large, and the new size", got, s.bytes)
	}
	plain := contentOf(&discovery.Answer{Resolved: []resolver.Endpoint{{Addresses: make([]resolver.Address, 3)}}})
	if size := sizeOf(core.Kept{Answer: plain}); size < minSize+3*100 {
		t.Errorf("three addresses count as %d bytes", size)
	}
}

func TestAnswersExpire(t *testing.T) {
	var s answerStore
	start := time.Unix(0, 0)
	s.keep(nil, core.Kept{Answer: contentOfSize(minSize), Confirmed: start})
	s.confirm(nil, contentOfSize(minSize), start)
	s.keep(0, core.Kept{Answer: contentOfSize(minSize), Confirmed: start})
	s.keep(1, core.Kept{Answer: contentOfSize(minSize), Confirmed: start})
	s.confirm(1, core.Answer{}, start.Add(30*time.Minute))
	s.confirm(2, core.Answer{}, start)
	if k, ok := s.get(0, start.Add(time.Hour)); !ok || !k.Confirmed.Equal(start) {
		t.Errorf("after an hour: confirmed at %v, kept %v", k.Confirmed, ok)
	}
	for _, key := range []int{0, 2} {
		if k, ok := s.get(key, start.Add(61*time.Minute)); ok || k.Answer.Content != nil {
			t.Errorf("key %d after 61 minutes: %v, kept %v; want nothing", key, k, ok)
		}
	}
	if got := storedKeys(&s, 3, start.Add(90*time.Minute)); got != "1" {
		t.Errorf("after 90 minutes %s are kept, want 1", got)
	}
	if len(s.entries) != 1 || s.bytes != minSize {
		t.Errorf("%d entries of %d bytes are kept, want one", len(s.entries), s.bytes)
	}
}

// The answer of a running source must not expire, because the source may still confirm it. A second
// source may use it at any time, so it does not count towards the limits of the store.
func TestAnswersOfRunningSourcesDoNotExpire(t *testing.T) {
	var s answerStore
	s.addRunning(nil, 1)
	s.addRunning(nil, -1)
	start := time.Unix(0, 0)
	for key := range 4 {
		s.addRunning(key, 1)
		s.addRunning(key, 1)
		s.keep(key, core.Kept{Answer: contentOfSize(minSize), Confirmed: start})
	}
	s.addRunning(1, -1)
	s.addRunning(1, -1)
	s.addRunning(3, -1)
	two := start.Add(2 * time.Hour)
	s.keep(4, core.Kept{Answer: contentOfSize(minSize), Confirmed: two})
	if got := storedKeys(&s, 4, two); got != "0 2" {
		t.Errorf("%s are returned two hours after they were confirmed, want those with two running sources", got)
	}
	for key := range 4 {
		s.confirm(key, core.Answer{}, two)
	}
	s.confirm(4, core.Answer{}, start)
	if got := storedKeys(&s, 5, start.Add(150*time.Minute)); got != "0 2 3 4" {
		t.Errorf("%s are kept, want 0 2 3 4", got)
	}
	for key := range maxEntries {
		s.keep(10+key, core.Kept{Answer: contentOfSize(minSize), Confirmed: two})
	}
	if got := storedKeys(&s, 5, two); got != "0 2 3" || len(s.entries) != maxEntries+3 {
		t.Errorf("%s of %d are kept, want 0 2 3", got, len(s.entries))
	}
	for key := range maxEntries {
		s.addRunning(2000+key, 1)
		s.keep(2000+key, core.Kept{Answer: contentOfSize(minSize), Confirmed: two})
	}
	if len(s.entries) != 2*maxEntries+3 {
		t.Errorf("%d entries are kept, want the limit, and those of running sources", len(s.entries))
	}
	for key := range maxEntries {
		s.addRunning(2000+key, -1)
	}
	if len(s.entries) != maxEntries+3 || s.bytes != maxEntries*minSize {
		t.Errorf("%d entries are kept after the sources were stopped, %d bytes count; want the limit", len(s.entries), s.bytes)
	}
}

// The limits must be those in docs/limits.md.
func TestDocumentedLimits(t *testing.T) {
	now := time.Unix(0, 0)
	var many, large, maximal answerStore
	for key := range 1001 {
		many.keep(key, core.Kept{Answer: contentOfSize(minSize), Confirmed: now})
	}
	if n := len(many.entries); n != 1000 {
		t.Errorf("%d of 1001 answers are kept, want 1000", n)
	}
	for key := range 65 {
		large.keep(key, core.Kept{Answer: contentOfSize(1 << 20), Confirmed: now})
	}
	if n := len(large.entries); n != 64 {
		t.Errorf("%d of 65 answers of 1 MiB are kept, want 64", n)
	}
	maximal.keep(0, core.Kept{Answer: contentOfSize(64 << 20), Confirmed: now})
	if n := len(maximal.entries); n != 1 {
		t.Errorf("an answer of 64 MiB is not kept")
	}
}

// Confirm may store an answer again only if there is enough space for it. Expired answers do not
// count.
func TestConfirmNeedsSpace(t *testing.T) {
	now := time.Unix(0, 0)
	for _, test := range []struct {
		about       string
		others      int
		size, renew int
		later       time.Duration
		want        bool
	}{
		{"nothing is stored", 0, minSize, minSize, 0, true},
		{"one entry is free", 999, minSize, minSize, 0, true},
		{"no entry is free", 1000, minSize, minSize, 0, false},
		{"all entries have expired", 1000, minSize, minSize, 2 * time.Hour, true},
		{"just enough bytes are free", 3, 16 << 20, 16 << 20, 0, true},
		{"one byte is missing", 3, 16 << 20, 16<<20 + 1, 0, false},
	} {
		var s answerStore
		for key := range test.others {
			s.keep(key, core.Kept{Answer: contentOfSize(test.size), Confirmed: now})
		}
		at := now.Add(test.later)
		s.confirm("new", contentOfSize(test.renew), at)
		_, got := s.get("new", at)
		if _, first := s.get(0, at); got != test.want || first != (test.others > 0 && test.later == 0) {
			t.Errorf("%s: stored again = %v, want %v; the first is kept = %v", test.about, got, test.want, first)
		}
	}
}

func TestEqual(t *testing.T) {
	var list core.Answer
	for _, test := range []struct {
		one, two core.Answer
		want     bool
	}{
		{contentOfSize(minSize), contentOfSize(minSize), true},
		{contentOfSize(minSize), contentOfSize(minSize + 1), false},
		{list, contentOfSize(minSize), false},
		{contentOfSize(minSize), list, false},
		{list, list, true},
	} {
		if got := equal(test.one, test.two); got != test.want {
			t.Errorf("%v and %v: equal = %v, want %v", test.one, test.two, got, test.want)
		}
	}
}

type sized struct{ discovery.Source }

func (sized) Size() int { return 5000 }

func TestSize(t *testing.T) {
	content := contentOfSize(minSize + 7)
	content.Names = lookups{"ab": {Addresses: []string{"10.0.0.1", "::1"}}, "c": {}}
	if got, want := sizeOf(core.Kept{Answer: content}), minSize+7+(100+2)+(20+8)+(20+3)+(100+1); got != want {
		t.Errorf("an answer with names has %d bytes, want %d", got, want)
	}
	list := core.Kept{List: []core.Mechanism{coreMechanism(&Mechanism{}), coreMechanism(&Mechanism{Mechanism: discovery.Mechanism{Source: sized{}}})}}
	if got, want := sizeOf(list), 2*100+5000; got != want {
		t.Errorf("two mechanisms have %d bytes, want %d", got, want)
	}
}

// Each name has its own time of confirmation, so that names can change while the answer stays the
// same.
func TestNamesExpireSeparately(t *testing.T) {
	var s answerStore
	start := time.Unix(0, 0)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	content := contentOfSize(minSize)
	content.Names = lookups{"a": {Addresses: []string{"10.0.0.1"}}, "b": {Addresses: []string{"10.0.0.2"}}}
	s.keep(0, core.Kept{Answer: content, Confirmed: start})
	content.Names = lookups{"a": {Addresses: []string{"10.0.0.1"}}, "b": {Addresses: []string{"10.0.0.2"}, Until: at(10)}}
	s.confirm(0, content, at(30))
	other := contentOfSize(minSize + 1)
	s.confirm(0, other, at(30))
	for minutes, want := range map[int]string{70: "map[a:30 b:10]", 71: "map[a:30]", 90: "map[a:30]"} {
		known, _ := s.get(0, at(minutes))
		left := make(map[string]int)
		for name, n := range lookupsOf(known.Answer) {
			left[name] = int(n.Until.Sub(start).Minutes())
		}
		if got := fmt.Sprint(left); got != want {
			t.Errorf("after %d minutes names are %s, want %s", minutes, got, want)
		}
	}
	if s.get(0, at(91)); s.bytes != 0 || len(s.entries) != 0 {
		t.Errorf("%d bytes in %d entries are kept after all have expired", s.bytes, len(s.entries))
	}
}

// If two channels have the same answer, the store must keep the later lookup of each name.
func TestMergeLater(t *testing.T) {
	start := time.Unix(0, 0)
	name := func(address string, until int) discovery.Name {
		n := discovery.Name{Addresses: []string{address}}
		if until > 0 {
			n.Until = start.Add(time.Duration(until) * time.Minute)
		}
		return n
	}
	for about, test := range map[string]struct{ kept, said, want discovery.Name }{
		"both lost it":             {name("a", 10), name("b", 5), name("a", 10)},
		"the same moment":          {name("a", 10), name("b", 10), name("b", 10)},
		"one has lost it since":    {name("a", 0), name("b", 40), name("b", 40)},
		"one had lost it before":   {name("a", 0), name("b", 20), name("a", 30)},
		"it can be looked up now":  {name("a", 0), name("b", 0), name("b", 0)},
		"it can be looked up anew": {name("a", 10), name("b", 0), name("b", 0)},
	} {
		kept := lookups{"x": test.kept, "gone": test.kept}
		said := lookups{"x": test.said, "new": test.said}
		got := said.mergeLater(kept, start.Add(30*time.Minute))
		if fmt.Sprint(said, kept) != fmt.Sprint(lookups{"x": test.said, "new": test.said}, lookups{"x": test.kept, "gone": test.kept}) {
			t.Errorf("%s: the names that were given have changed", about)
		}
		if want := (lookups{"x": test.want, "new": test.said}); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: there are %v, want %v", about, got, want)
		}
	}
}
