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
	name      int
	late      bool
	addresses []string
	err       error
	at        time.Time
	passed    bool
}

// history is the oracle. It keeps all events, and derives the expected answer from them by the
// rules in the package comment.
type history struct {
	remembered []Name
	beside     bool
	events     []event
}

func (h *history) last(name int) (last, answered *event) {
	for i := range h.events {
		if e := &h.events[i]; !e.late && e.name == name {
			if last = e; e.err == nil {
				answered = e
			}
		}
	}
	return last, answered
}

func (h *history) addresses(name int) ([]string, time.Time) {
	addresses, until := h.remembered[name].Addresses, h.remembered[name].Until
	if _, answered := h.last(name); answered != nil {
		addresses, until = answered.addresses, time.Time{}
	}
	for _, e := range h.events {
		switch {
		case e.late || e.name != name:
		case e.err == nil:
			until = time.Time{}
		case until.IsZero():
			until = e.at
		}
	}
	return addresses, until
}

func (h *history) counts() (heard, well, flawed int, late, passed bool) {
	for i := range h.remembered {
		switch last, _ := h.last(i); {
		case last == nil:
			continue
		case last.err == nil:
			well++
		default:
			flawed++
		}
		heard++
	}
	for _, e := range h.events {
		late, passed = late || e.late, passed || e.passed
	}
	return heard, well, flawed, late, passed
}

func (h *history) ready() bool {
	heard, _, _, late, _ := h.counts()
	return heard == len(h.remembered) || late && (heard > 0 || h.beside)
}

func (h *history) fails(some bool) bool {
	_, well, flawed, _, passed := h.counts()
	if passed {
		return !some || flawed == len(h.remembered)
	}
	return !some || well == 0 && !h.beside
}

func (h *history) news() bool {
	now := h.events[len(h.events)-1]
	before := history{h.remembered, h.beside, h.events[:len(h.events)-1]}
	if now.late {
		heard, _, _, _, _ := before.counts()
		return heard < len(h.remembered)
	}
	last, _ := before.last(now.name)
	a, u := before.addresses(now.name)
	b, v := h.addresses(now.name)
	return last == nil || fmt.Sprint(a, u, last.err) != fmt.Sprint(b, v, now.err)
}

func TestAgainstTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{remembered: make([]Name, rapid.IntRange(1, 3).Draw(t, "names")), beside: rapid.Bool().Draw(t, "beside")}
		for i := range h.remembered {
			if rapid.Bool().Draw(t, "remembered") {
				until := rapid.SampledFrom([]time.Time{{}, start.Add(-time.Minute)}).Draw(t, "until")
				h.remembered[i] = Name{Addresses: []string{"x"}, Held: Held{until}}
			}
		}
		s := New(append([]Name(nil), h.remembered...), h.beside)
		now := start
		for range rapid.IntRange(1, 12).Draw(t, "events") {
			now = now.Add(time.Second)
			e := event{name: rapid.IntRange(0, len(h.remembered)-1).Draw(t, "name"), at: now}
			var news bool
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				e.late = true
				h.events = append(h.events, e)
				news = s.Late()
			case 1, 2:
				e.addresses = []string{rapid.SampledFrom([]string{"x", "y"}).Draw(t, "address")}
				h.events = append(h.events, e)
				news = s.Found(e.name, e.addresses)
			default:
				e.err = rapid.SampledFrom([]error{errDown, errors.New("no such host")}).Draw(t, "error")
				h.events = append(h.events, e)
				news = s.Failed(e.name, e.err, now)
			}
			if news != h.news() || s.Ready() != h.ready() {
				t.Fatalf("news %v and ready %v, want %v and %v", news, s.Ready(), h.news(), h.ready())
			}
			for i, n := range s.Names() {
				addresses, until := h.addresses(i)
				if fmt.Sprint(n.Addresses, n.Until) != fmt.Sprint(addresses, until) {
					t.Fatalf("name %d has %v until %v, want %v until %v", i, n.Addresses, n.Until, addresses, until)
				}
			}
			if s.Ready() {
				some := rapid.Bool().Draw(t, "some")
				want := h.fails(some)
				if got := s.Fails(some); got != want {
					t.Fatalf("the names fail: %v, want %v", got, want)
				}
				h.events[len(h.events)-1].passed = !want
			}
		}
	})
}

func TestFlaws(t *testing.T) {
	s := New(make([]Name, 6), false)
	called := func(i int) string { return string(rune('a' + i)) }
	if got := s.Flaws(called); got != "" {
		t.Errorf("without errors: %q", got)
	}
	for i := range 6 {
		s.Failed(i, errDown, start)
	}
	s.Found(1, []string{"x"})
	if got, want := s.Flaws(called), "a: server misbehaving; c: server misbehaving; d: server misbehaving; e: server misbehaving; and 1 more"; got != want {
		t.Errorf("flaws %q, want %q", got, want)
	}
	var list []error
	for _, text := range strings.Fields("f e d c b a f") {
		list = append(list, errors.New(text))
	}
	for n, want := range map[int]string{0: "<nil>", 1: "f", 2: "e; f", 7: "a; b; c; d; and 2 more"} {
		if got := fmt.Sprint(Flaws(list[:n])); got != want {
			t.Errorf("%d errors: %q, want %q", n, got, want)
		}
	}
	if one := []error{errDown, errDown}; Flaws(one) != errDown {
		t.Errorf("duplicate errors: %v, want the first", Flaws(one))
	}
}
