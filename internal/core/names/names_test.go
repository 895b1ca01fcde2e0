package names

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	errDown = errors.New("server misbehaving")
	start   = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
)

type event struct {
	name       int
	holdIsOver bool
	addresses  []string
	err        error
	time       time.Time
	answered   bool
}

// history is the oracle. It keeps all events, and derives the expected answer from them according
// to the rules in the package comment.
type history struct {
	initial     []Name
	hasLiterals bool
	events      []event
}

func (h *history) last(name int) (last, lastSuccess *event) {
	for i := range h.events {
		if e := &h.events[i]; !e.holdIsOver && e.name == name {
			if last = e; e.err == nil {
				lastSuccess = e
			}
		}
	}
	return last, lastSuccess
}

func (h *history) addresses(name int) ([]string, time.Time) {
	addresses, until := h.initial[name].Addresses, h.initial[name].Until
	if _, lastSuccess := h.last(name); lastSuccess != nil {
		addresses, until = lastSuccess.addresses, time.Time{}
	}
	for _, e := range h.events {
		switch {
		case e.holdIsOver || e.name != name:
		case e.err == nil:
			until = time.Time{}
		case until.IsZero():
			until = e.time
		}
	}
	return addresses, until
}

func (h *history) counts() (withResult, succeeded, failed int, holdIsOver, answered bool) {
	for i := range h.initial {
		switch last, _ := h.last(i); {
		case last == nil:
			continue
		case last.err == nil:
			succeeded++
		default:
			failed++
		}
		withResult++
	}
	for _, e := range h.events {
		holdIsOver, answered = holdIsOver || e.holdIsOver, answered || e.answered
	}
	return withResult, succeeded, failed, holdIsOver, answered
}

func (h *history) ready() bool {
	withResult, _, _, holdIsOver, _ := h.counts()
	return withResult == len(h.initial) || holdIsOver && (withResult > 0 || h.hasLiterals)
}

func (h *history) fails(hasEndpoints bool) bool {
	_, succeeded, failed, _, answered := h.counts()
	if answered {
		return !hasEndpoints || failed == len(h.initial)
	}
	return !hasEndpoints || succeeded == 0 && !h.hasLiterals
}

func (h *history) changed() bool {
	latest := h.events[len(h.events)-1]
	before := history{h.initial, h.hasLiterals, h.events[:len(h.events)-1]}
	if latest.holdIsOver {
		withResult, _, _, _, _ := before.counts()
		return withResult < len(h.initial)
	}
	last, _ := before.last(latest.name)
	a, u := before.addresses(latest.name)
	b, v := h.addresses(latest.name)
	return last == nil || fmt.Sprint(a, u, last.err) != fmt.Sprint(b, v, latest.err)
}

func TestAgainstTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{initial: make([]Name, rapid.IntRange(1, 3).Draw(t, "names")), hasLiterals: rapid.Bool().Draw(t, "beside")}
		for i := range h.initial {
			if rapid.Bool().Draw(t, "remembered") {
				until := rapid.SampledFrom([]time.Time{{}, start.Add(-time.Minute)}).Draw(t, "until")
				h.initial[i] = Name{Addresses: []string{"x"}, Held: Held{until}}
			}
		}
		s := New(append([]Name(nil), h.initial...), h.hasLiterals)
		now := start
		for range rapid.IntRange(1, 12).Draw(t, "events") {
			now = now.Add(time.Second)
			e := event{name: rapid.IntRange(0, len(h.initial)-1).Draw(t, "name"), time: now}
			var changed bool
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				e.holdIsOver = true
				h.events = append(h.events, e)
				changed = s.Late()
			case 1, 2:
				e.addresses = []string{rapid.SampledFrom([]string{"x", "y"}).Draw(t, "address")}
				h.events = append(h.events, e)
				changed = s.Found(e.name, e.addresses)
			default:
				e.err = rapid.SampledFrom([]error{errDown, errors.New("no such host")}).Draw(t, "error")
				h.events = append(h.events, e)
				changed = s.Failed(e.name, e.err, now)
			}
			if changed != h.changed() || s.Ready() != h.ready() {
				t.Fatalf("news %v and ready %v, want %v and %v", changed, s.Ready(), h.changed(), h.ready())
			}
			for i, n := range s.Names() {
				addresses, until := h.addresses(i)
				if fmt.Sprint(n.Addresses, n.Until) != fmt.Sprint(addresses, until) {
					t.Fatalf("name %d has %v until %v, want %v until %v", i, n.Addresses, n.Until, addresses, until)
				}
			}
			if s.Ready() {
				hasEndpoints := rapid.Bool().Draw(t, "some")
				want := h.fails(hasEndpoints)
				if got := s.Fails(hasEndpoints); got != want {
					t.Fatalf("the names fail: %v, want %v", got, want)
				}
				h.events[len(h.events)-1].answered = !want
			}
		}
	})
}

func TestFlaws(t *testing.T) {
	s := New(make([]Name, 6), false)
	title := func(i int) string { return string(rune('a' + i)) }
	if got := s.Flaws(title); got != "" {
		t.Errorf("without errors: %q", got)
	}
	for i := range 6 {
		s.Failed(i, errDown, start)
	}
	s.Found(1, []string{"x"})
	if got, want := s.Flaws(title), "a: server misbehaving; c: server misbehaving; d: server misbehaving; e: server misbehaving; and 1 more"; got != want {
		t.Errorf("flaws %q, want %q", got, want)
	}
	var list []error
	for _, text := range strings.Fields("f e d c b a f") {
		list = append(list, errors.New(text))
	}
	for n, want := range map[int]string{0: "<nil>", 1: "f", 2: "e; f", 7: "a; b; c; d; and 2 more"} {
		if got := fmt.Sprint(DescribeFailures(list[:n])); got != want {
			t.Errorf("%d errors: %q, want %q", n, got, want)
		}
	}
	if duplicates := []error{errDown, errDown}; DescribeFailures(duplicates) != errDown {
		t.Errorf("duplicate errors: %v, want the first", DescribeFailures(duplicates))
	}
}
