package share_test

import (
	"testing"

	"github.com/understudy-lb/understudy/internal/core/share"
)

func TestLast(t *testing.T) {
	standings := map[rune]share.Standing{
		'R': {Ready: true}, 'T': {Ready: true, Tripped: true}, 'a': {Awaited: true}, '-': {},
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
		var list []share.Standing
		for _, p := range order {
			list = append(list, standings[p])
		}
		if got := share.Last(list); got != want {
			t.Errorf("%q: %d is the last one, want %d", order, got, want)
		}
	}
}
