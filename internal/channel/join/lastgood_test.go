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

func contentOfSize(bytes int) core.Answer {
	return contentOf(&discovery.Answer{Why: strings.Repeat("x", bytes-minSize)})
}

var minSize = topology.Size(new(discovery.Answer))

// run stores the answer of a source that starts and stops.
func (s *answerStore) run(key any, k core.Kept) {
	s.started(key)
	s.keep(key, k)
	s.stopped(key, k.Confirmed)
}

func storedKeys(s *answerStore, n int, now time.Time) string {
	var keys []string
	for key := range n {
		if _, ok := s.get(key, now.Add(-keepFor)); ok {
			keys = append(keys, fmt.Sprint(key))
		}
	}
	return strings.Join(keys, " ")
}

func TestMaxEntries(t *testing.T) {
	var s answerStore
	now := time.Unix(0, 0)
	for key := range maxEntries + 3 {
		s.run(key, core.Kept{Answer: contentOfSize(minSize), Confirmed: now})
		s.started(0) // key 0 is now the last whose source stopped
		s.stopped(0, now)
	}
	if len(s.entries) != maxEntries || s.idle.Len() != maxEntries || s.bytes != maxEntries*minSize {
		t.Errorf("%d entries of %d bytes are kept, want %d", len(s.entries), s.bytes, maxEntries)
	}
	if got := storedKeys(&s, 5, now); got != "0 4" {
		t.Errorf("of the first five %s are kept, want the one whose source ran again, and the last", got)
	}
}

func TestMaxBytes(t *testing.T) {
	var s answerStore
	now := time.Unix(0, 0)
	for key := range 5 {
		s.run(key, core.Kept{Answer: contentOfSize(maxBytes / 4), Confirmed: now})
	}
	if got := storedKeys(&s, 5, now); got != "1 2 3 4" || s.bytes != maxBytes {
		t.Errorf("%s are kept, %d bytes; want the last four", got, s.bytes)
	}
	s.run(9, core.Kept{Answer: contentOfSize(maxBytes + 1), Confirmed: now})
	s.run(4, core.Kept{Answer: contentOfSize(minSize), Confirmed: now})
	s.run(8, core.Kept{})
	if got := storedKeys(&s, 10, now); got != "1 2 3 4" || s.bytes != 3*maxBytes/4+minSize || len(s.entries) != 4 {
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
	s.run(nil, core.Kept{Answer: contentOfSize(minSize), Confirmed: start})
	for key := range 2 {
		s.started(key)
		s.keep(key, core.Kept{Answer: contentOfSize(minSize), Confirmed: start})
	}
	s.confirm(1, core.Answer{}, start.Add(30*time.Minute))
	s.confirm(1, core.Answer{}, start)
	s.stopped(0, start)
	s.stopped(1, start)
	if k, ok := s.get(0, start); !ok || !k.Confirmed.Equal(start) {
		t.Errorf("after an hour: confirmed at %v, kept %v", k.Confirmed, ok)
	}
	for _, key := range []any{0, 2, nil} {
		if k, ok := s.get(key, start.Add(time.Minute)); ok || k.Answer.Content != nil {
			t.Errorf("key %v after 61 minutes: %v, kept %v; want nothing", key, k, ok)
		}
	}
	if got := storedKeys(&s, 3, start.Add(90*time.Minute)); got != "1" {
		t.Errorf("after 90 minutes %s are kept, want 1", got)
	}
	s.run(2, core.Kept{Answer: contentOfSize(minSize), Confirmed: start.Add(90 * time.Minute)})
	if len(s.entries) != 2 || s.bytes != 2*minSize {
		t.Errorf("%d entries of %d bytes are kept, want two", len(s.entries), s.bytes)
	}
}

// The answer of a running source is not dropped, because the source may still confirm it, and because
// a source that succeeds it may need it. It does not count towards the limits of the store.
func TestAnswersOfRunningSourcesAreNotDropped(t *testing.T) {
	var s answerStore
	start := time.Unix(0, 0)
	for key := range 3 {
		s.started(key)
		s.started(key)
		s.keep(key, core.Kept{Answer: contentOfSize(minSize), Confirmed: start})
	}
	s.stopped(1, start)
	s.stopped(1, start)
	s.stopped(2, start)
	two := start.Add(2 * time.Hour)
	for key := range maxEntries {
		s.run(10+key, core.Kept{Answer: contentOfSize(minSize), Confirmed: two})
		s.started(2000 + key)
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
	s.confirm(0, core.Answer{}, two)
	if got := storedKeys(&s, 3, two); got != "0" {
		t.Errorf("%s are returned after a confirmation, want 0", got)
	}
	for key := range maxEntries {
		s.stopped(2000+key, two)
	}
	if len(s.entries) != maxEntries+2 || s.bytes != maxEntries*minSize {
		t.Errorf("%d entries are kept after the sources were stopped, %d bytes count; want the limit", len(s.entries), s.bytes)
	}
}

// The limits must be those in docs/limits.md.
func TestDocumentedLimits(t *testing.T) {
	now := time.Unix(0, 0)
	var many, large, maximal answerStore
	for key := range 1001 {
		many.run(key, core.Kept{Answer: contentOfSize(minSize), Confirmed: now})
	}
	if n := len(many.entries); n != 1000 {
		t.Errorf("%d of 1001 answers are kept, want 1000", n)
	}
	for key := range 65 {
		large.run(key, core.Kept{Answer: contentOfSize(1 << 20), Confirmed: now})
	}
	if n := len(large.entries); n != 64 {
		t.Errorf("%d of 65 answers of 1 MiB are kept, want 64", n)
	}
	maximal.run(0, core.Kept{Answer: contentOfSize(64 << 20), Confirmed: now})
	if n := len(maximal.entries); n != 1 {
		t.Errorf("an answer of 64 MiB is not kept")
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
	s.started(0)
	s.keep(0, core.Kept{Answer: content, Confirmed: start})
	content.Names = lookups{"a": {Addresses: []string{"10.0.0.1"}}, "b": {Addresses: []string{"10.0.0.2"}, Until: at(10)}}
	s.confirm(0, content, at(30))
	other := contentOfSize(minSize + 1)
	s.confirm(0, other, at(30))
	for minutes, want := range map[int]string{70: "map[a:30 b:10]", 71: "map[a:30]", 90: "map[a:30]", 91: "map[]"} {
		known, _ := s.get(0, at(minutes-60))
		left := make(map[string]int)
		for name, n := range lookupsOf(known.Answer) {
			left[name] = int(n.Until.Sub(start).Minutes())
		}
		if got := fmt.Sprint(left); got != want {
			t.Errorf("after %d minutes names are %s, want %s", minutes, got, want)
		}
	}
}
