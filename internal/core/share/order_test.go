package share_test

import (
	"testing"

	"github.com/understudy-lb/understudy/internal/core/share"
)

func TestLast(t *testing.T) {
	places := map[rune]share.Place{
		'R': {Ready: true}, 'T': {Ready: true, Standing: share.Standing{Depth: share.Tripped}}, 'a': {Awaited: true}, '-': {},
	}
	for order, want := range map[string]int{
		"R":   0,
		"RR":  1,
		"RT":  1,
		"R-":  0,
		"Ra":  0, // takes what it can carry, so no call waits
		"Ta":  -1,
		"T-":  0,
		"TRa": 1,
		"TTa": -1,
		"aT":  1, // one above that reconnects changes nothing
		"TaT": 2,
		"a":   -1,
		"-":   -1,
		"":    -1,
	} {
		var list []share.Place
		for _, p := range order {
			list = append(list, places[p])
		}
		if got := share.Last(list); got != want {
			t.Errorf("%q: %d is the last one, want %d", order, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	places := map[rune]share.Place{
		'R': {Ready: true}, 'W': {Ready: true, Standing: share.Standing{Wanted: true}}, 'c': {Ready: true, Standing: share.Standing{Depth: share.Part}}, '-': {Standing: share.Standing{Depth: share.Low}},
	}
	for order, want := range map[string]int{"R": -1, "W": 0, "c": 0, "cR": 0, "cc": 1, "RW": 1, "R-": -1, "c-": 0, "": -1} {
		var list []share.Place
		for _, p := range order {
			list = append(list, places[p])
		}
		if got := share.Short(list); got != want {
			t.Errorf("%q: %d is short, want %d", order, got, want)
		}
	}
}

func TestLeftoverWaitsIfAllAreTripped(t *testing.T) {
	for _, tripped := range [][]bool{{true, true}, {true, false}, {false, true}} {
		sent, waits := share.Leftover(2, true, func(i int) (bool, bool) { return false, tripped[i] })
		if sent || waits != (tripped[0] && tripped[1]) {
			t.Errorf("tripped %v: sent is %v, waits is %v", tripped, sent, waits)
		}
	}
	if sent, waits := share.Leftover(2, true, func(i int) (bool, bool) { return i == 1, true }); !sent || waits {
		t.Errorf("the second takes a probe: sent is %v, waits is %v", sent, waits)
	}
}

// At the start of a channel, only a priority that was READY before may be cold.
func TestMayBeCold(t *testing.T) {
	l := share.NewLink()
	if first, second := l.Note(0, true), l.Note(0, true); !first || second {
		t.Errorf("it became READY: %v, and again: %v", first, second)
	}
	l.Note(1, false)
	if l.Note(2, false); l.LostAt != 1 {
		t.Errorf("its connections were lost at %v, want 1ns", l.LostAt)
	}
	if first, second := l.MayBeCold(false, true), l.MayBeCold(false, true); first || !second {
		t.Errorf("the first connection may be cold: %v, the second: %v", first, second)
	}
}
