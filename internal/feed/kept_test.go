package feed

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/resolver"
)

// cluster returns what a source of that many bytes says.
func cluster(bytes int) said { return said{cluster: make([]byte, bytes)} }

// held returns which of the keys from 0 to n are kept.
func held(s *store, n int, now time.Time) string {
	var keys []string
	for key := range n {
		if _, _, ok := s.get(key, now); ok {
			keys = append(keys, fmt.Sprint(key))
		}
	}
	return strings.Join(keys, " ")
}

func TestTheNumberKeptIsBounded(t *testing.T) {
	var s store
	now := time.Unix(0, 0)
	for key := range keptEntries + 3 {
		s.put(key, cluster(1), now)
		s.confirm(0, now) // the others are older
	}
	if len(s.entries) != keptEntries || s.order.Len() != keptEntries || s.bytes != keptEntries {
		t.Errorf("%d entries of %d bytes are kept, want %d", len(s.entries), s.bytes, keptEntries)
	}
	if got := held(&s, 5, now); got != "0 4" {
		t.Errorf("of the first five %s are kept, want the one that was confirmed, and the last", got)
	}
}

func TestTheBytesKeptAreBounded(t *testing.T) {
	var s store
	now := time.Unix(0, 0)
	for key := range 5 {
		s.put(key, cluster(keptBytes/4), now)
	}
	if got := held(&s, 5, now); got != "1 2 3 4" || s.bytes != keptBytes {
		t.Errorf("%s are kept, %d bytes; want the last four", got, s.bytes)
	}
	s.put(9, cluster(keptBytes+1), now)
	s.put(4, cluster(1), now)
	if got := held(&s, 10, now); got != "1 2 3 4" || s.bytes != 3*keptBytes/4+1 {
		t.Errorf("%s are kept, %d bytes; want no place for one that is too large, and the new size", got, s.bytes)
	}
	plain := said{endpoints: []resolver.Endpoint{{Addresses: make([]resolver.Address, 3)}}}
	if plain.size() < 3*100 {
		t.Errorf("three addresses count as %d bytes", plain.size())
	}
}

func TestWhatIsKeptExpires(t *testing.T) {
	var s store
	start := time.Unix(0, 0)
	s.put(nil, cluster(1), start)
	s.put(0, cluster(1), start)
	s.put(1, cluster(1), start)
	s.confirm(1, start.Add(30*time.Minute))
	s.confirm(2, start)
	if _, age, ok := s.get(0, start.Add(time.Hour)); !ok || age != time.Hour {
		t.Errorf("after an hour: age %v, kept %v", age, ok)
	}
	if got := held(&s, 3, start.Add(90*time.Minute)); got != "1" {
		t.Errorf("after 90 minutes %s are kept, want 1", got)
	}
	if len(s.entries) != 1 || s.bytes != 1 {
		t.Errorf("%d entries of %d bytes are kept, want one", len(s.entries), s.bytes)
	}
}

// The source of an answer may be at work still, and confirm it later: only time that it
// was not confirmed in the end counts.
func TestAnotherAnswerDoesNotMakeOneExpire(t *testing.T) {
	var s store
	start := time.Unix(0, 0)
	s.put(0, cluster(1), start)
	s.put(1, cluster(1), start.Add(2*time.Hour))
	s.confirm(0, start.Add(2*time.Hour))
	s.confirm(1, start) // by a channel that lost its server long ago
	if got := held(&s, 2, start.Add(150*time.Minute)); got != "0 1" {
		t.Errorf("%s are kept, want 0 1", got)
	}
}
