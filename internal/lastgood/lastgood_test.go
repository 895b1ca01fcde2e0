package lastgood

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/topology"
)

func said(a *discovery.Answer) Said {
	return Said{Answer: &topology.Checked{Answer: a, Size: topology.Size(a)}}
}

func cluster(bytes int) Said {
	return said(&discovery.Answer{Why: strings.Repeat("x", bytes-least)})
}

var least = topology.Size(new(discovery.Answer))

func held(s *Store, n int, now time.Time) string {
	var keys []string
	for key := range n {
		if _, _, ok := s.Get(key, now); ok {
			keys = append(keys, fmt.Sprint(key))
		}
	}
	return strings.Join(keys, " ")
}

func TestTheNumberKeptIsBounded(t *testing.T) {
	var s Store
	now := time.Unix(0, 0)
	for key := range keptEntries + 3 {
		s.Put(key, cluster(least), now)
		s.Confirm(0, now) // key 0 now has the latest confirmation
	}
	if len(s.entries) != keptEntries || s.order.Len() != keptEntries || s.bytes != keptEntries*least {
		t.Errorf("%d entries of %d bytes are kept, want %d", len(s.entries), s.bytes, keptEntries)
	}
	if got := held(&s, 5, now); got != "0 4" {
		t.Errorf("of the first five %s are kept, want the one that was confirmed, and the last", got)
	}
}

func TestTheBytesKeptAreBounded(t *testing.T) {
	var s Store
	now := time.Unix(0, 0)
	for key := range 5 {
		s.Put(key, cluster(keptBytes/4), now)
	}
	if got := held(&s, 5, now); got != "1 2 3 4" || s.bytes != keptBytes {
		t.Errorf("%s are kept, %d bytes; want the last four", got, s.bytes)
	}
	s.Put(9, cluster(keptBytes+1), now)
	s.Put(4, cluster(least), now)
	if got := held(&s, 10, now); got != "1 2 3 4" || s.bytes != 3*keptBytes/4+least {
		t.Errorf("%s are kept, %d bytes; want no answer that is too large, and the new size", got, s.bytes)
	}
	plain := said(&discovery.Answer{Resolved: []resolver.Endpoint{{Addresses: make([]resolver.Address, 3)}}})
	if plain.size() < least+3*100 {
		t.Errorf("three addresses count as %d bytes", plain.size())
	}
}

func TestWhatIsKeptExpires(t *testing.T) {
	var s Store
	start := time.Unix(0, 0)
	s.Put(nil, cluster(least), start)
	s.Put(0, cluster(least), start)
	s.Put(1, cluster(least), start)
	s.Confirm(1, start.Add(30*time.Minute))
	s.Confirm(2, start)
	if _, age, ok := s.Get(0, start.Add(time.Hour)); !ok || age != time.Hour {
		t.Errorf("after an hour: age %v, kept %v", age, ok)
	}
	for _, key := range []int{0, 2} {
		if what, age, ok := s.Get(key, start.Add(61*time.Minute)); ok || age != 0 || what.Answer != nil {
			t.Errorf("key %d after 61 minutes: %v, age %v, kept %v; want nothing", key, what, age, ok)
		}
	}
	if got := held(&s, 3, start.Add(90*time.Minute)); got != "1" {
		t.Errorf("after 90 minutes %s are kept, want 1", got)
	}
	if len(s.entries) != 1 || s.bytes != least {
		t.Errorf("%d entries of %d bytes are kept, want one", len(s.entries), s.bytes)
	}
}

// The answer of a running source must not expire, because the source may still confirm it. If the
// store is full, other answers must be removed first.
func TestTheAnswerOfASourceAtWorkDoesNotExpire(t *testing.T) {
	var s Store
	s.Begin(nil)
	s.End(nil)
	start := time.Unix(0, 0)
	for key := range 4 {
		s.Begin(key)
		s.Begin(key)
		s.Put(key, cluster(least), start)
	}
	s.End(1)
	s.End(1)
	s.End(3)
	two := start.Add(2 * time.Hour)
	s.Put(4, cluster(least), two)
	if got := held(&s, 4, two); got != "" {
		t.Errorf("%s are returned two hours after they were confirmed", got)
	}
	for key := range 4 {
		s.Confirm(key, two)
	}
	s.Confirm(4, start)
	if got := held(&s, 5, start.Add(150*time.Minute)); got != "0 2 3 4" {
		t.Errorf("%s are kept, want 0 2 3 4", got)
	}
	for key := range keptEntries {
		s.Put(10+key, cluster(least), two)
	}
	if got := held(&s, 5, two); got != "0 2 3" || len(s.entries) != keptEntries {
		t.Errorf("%s of %d are kept, want 0 2 3", got, len(s.entries))
	}
	for key := range keptEntries {
		s.Begin(2000 + key)
		s.Put(2000+key, cluster(least), two)
	}
	if len(s.entries) != keptEntries {
		t.Errorf("%d entries are kept, with a running source for each", len(s.entries))
	}
}

// The limits must be those in docs/limits.md.
func TestTheLimits(t *testing.T) {
	now := time.Unix(0, 0)
	var many, large, whole Store
	for key := range 1001 {
		many.Put(key, cluster(least), now)
	}
	if n := len(many.entries); n != 1000 {
		t.Errorf("%d of 1001 answers are kept, want 1000", n)
	}
	for key := range 65 {
		large.Put(key, cluster(1<<20), now)
	}
	if n := len(large.entries); n != 64 {
		t.Errorf("%d of 65 answers of 1 MiB are kept, want 64", n)
	}
	whole.Put(0, cluster(64<<20), now)
	if n := len(whole.entries); n != 1 {
		t.Errorf("an answer of 64 MiB is not kept")
	}
}

// An answer that was removed from the store may be stored again only if there is room for it.
// Expired answers do not take room.
func TestRenewNeedsRoom(t *testing.T) {
	now := time.Unix(0, 0)
	for _, test := range []struct {
		about       string
		others      int
		size, renew int
		later       time.Duration
		want        bool
	}{
		{"nothing is stored", 0, least, least, 0, true},
		{"one entry is free", 999, least, least, 0, true},
		{"no entry is free", 1000, least, least, 0, false},
		{"all entries have expired", 1000, least, least, 2 * time.Hour, true},
		{"just enough bytes are free", 3, 16 << 20, 16 << 20, 0, true},
		{"one byte is missing", 3, 16 << 20, 16<<20 + 1, 0, false},
	} {
		var s Store
		for key := range test.others {
			s.Put(key, cluster(test.size), now)
		}
		at := now.Add(test.later)
		s.Renew("new", cluster(test.renew), at)
		_, _, got := s.Get("new", at)
		if _, _, first := s.Get(0, at); got != test.want || first != (test.others > 0 && test.later == 0) {
			t.Errorf("%s: stored again = %v, want %v; the first is kept = %v", test.about, got, test.want, first)
		}
	}
}

func TestEqual(t *testing.T) {
	parts := Said{Parts: make([]discovery.Mechanism, 1)}
	for _, test := range []struct {
		one, two Said
		want     bool
	}{
		{cluster(least), cluster(least), true},
		{cluster(least), cluster(least + 1), false},
		{parts, cluster(least), false},
		{cluster(least), parts, false},
		{parts, parts, true},
	} {
		if got := test.one.equal(test.two); got != test.want {
			t.Errorf("%v and %v: equal = %v, want %v", test.one, test.two, got, test.want)
		}
	}
}

type sized struct{ discovery.Source }

func (sized) Size() int { return 5000 }

func TestSize(t *testing.T) {
	what := cluster(least + 7)
	what.Names = Names{"ab": {Addresses: []string{"10.0.0.1", "::1"}}, "c": {}}
	if got, want := what.size(), least+7+(100+2)+(20+8)+(20+3)+(100+1); got != want {
		t.Errorf("an answer with names has %d bytes, want %d", got, want)
	}
	what = Said{Parts: []discovery.Mechanism{{}, {Source: sized{}}}}
	if got, want := what.size(), 2*100+5000; got != want {
		t.Errorf("two mechanisms have %d bytes, want %d", got, want)
	}
}

// Each name has its own time of confirmation. Names may change while the answer stays the same.
func TestNamesExpireOneByOne(t *testing.T) {
	var s Store
	start := time.Unix(0, 0)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	put := cluster(least)
	put.Names = Names{"a": {Addresses: []string{"10.0.0.1"}}, "b": {Addresses: []string{"10.0.0.2"}}}
	s.Put(0, put, start)
	put.Names = Names{"a": {Addresses: []string{"10.0.0.1"}}, "b": {Addresses: []string{"10.0.0.2"}, Until: at(10)}}
	s.Renew(0, put, at(30))
	other := cluster(least + 1)
	s.Renew(0, other, at(30))
	for minutes, want := range map[int]string{70: "map[a:30 b:10]", 71: "map[a:30]", 90: "map[a:30]"} {
		known, age, _ := s.Get(0, at(minutes))
		left := make(map[string]int)
		for name, n := range known.Names.Since(at(minutes).Add(-For), at(minutes).Add(-age)) {
			left[name] = int(n.Until.Sub(start).Minutes())
		}
		if got := fmt.Sprint(left); got != want {
			t.Errorf("after %d minutes names are %s, want %s", minutes, got, want)
		}
	}
	if s.Get(0, at(91)); s.bytes != 0 || len(s.entries) != 0 {
		t.Errorf("%d bytes in %d entries are kept after all have expired", s.bytes, len(s.entries))
	}
}

// Two channels have the same answer. For each name, the store must keep the addresses that either
// of them confirmed last.
func TestNamesOfTwoChannelsAreThoseKnownLater(t *testing.T) {
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
		kept := Names{"x": test.kept, "gone": test.kept}
		said := Names{"x": test.said, "new": test.said}
		got := said.orLater(kept, start.Add(30*time.Minute))
		if fmt.Sprint(said, kept) != fmt.Sprint(Names{"x": test.said, "new": test.said}, Names{"x": test.kept, "gone": test.kept}) {
			t.Errorf("%s: the names that were given have changed", about)
		}
		if want := (Names{"x": test.want, "new": test.said}); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: there are %v, want %v", about, got, want)
		}
	}
}
