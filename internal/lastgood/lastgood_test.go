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

// cluster returns an answer of the given size in bytes, which must not be below least.
func cluster(bytes int) Said {
	return said(&discovery.Answer{Why: strings.Repeat("x", bytes-least)})
}

var least = topology.Size(new(discovery.Answer))

// held lists the keys below n that have a stored answer.
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
		s.Confirm(0, now) // the other answers were confirmed earlier
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
	if got := held(&s, 3, start.Add(90*time.Minute)); got != "1" {
		t.Errorf("after 90 minutes %s are kept, want 1", got)
	}
	if len(s.entries) != 1 || s.bytes != least {
		t.Errorf("%d entries of %d bytes are kept, want one", len(s.entries), s.bytes)
	}
}

// While a source runs, its answer does not expire, because the source may still confirm it. If the
// store is full, other answers are dropped first.
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
	s.Confirm(4, start) // for a channel that lost its server long ago
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

// Names are confirmed one by one. They may change while the answer stays the same.
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
	s.Renew(0, other, at(30)) // for a channel with another answer
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

// Two channels have the same answer. For each name, the store keeps the addresses that were
// confirmed last, by whichever channel.
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
		got := Names{"x": test.said, "new": test.said}.orLater(kept, start.Add(30*time.Minute))
		if want := (Names{"x": test.want, "new": test.said}); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: there are %v, want %v", about, got, want)
		}
	}
}
