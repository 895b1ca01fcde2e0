package names

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestNext(t *testing.T) {
	for _, test := range []struct {
		maxMisses int
		steps     string // "ANSWER->VALUES": an answer and the values after it
	}{
		{1, "ab->ab; cb->bc; b->b; ->"},
		{2, "ab->ab; cb->abc; bc->bc; ->bc; c->c"},
		{2, "aa->a; b->ab; a->ab; b->ab; a->ab"},
		{3, "a->a; b->ab; c->abc; a->abc; b->abc; c->abc; a->abc"},
	} {
		var s Lingering[rune, rune]
		for step := range strings.SplitSeq(test.steps, "; ") {
			answer, want, _ := strings.Cut(step, "->")
			got := string(s.Next(test.maxMisses, []rune(answer), func(r rune) rune { return r }))
			if got != want {
				t.Errorf("after %d, %s: got %q after %q, want %q", test.maxMisses, test.steps, got, answer, want)
			}
		}
	}
}

func TestNextKeepsTheLatestValue(t *testing.T) {
	var s Lingering[byte, string]
	key := func(v string) byte { return v[0] }
	s.Next(2, []string{"a1", "b1"}, key)
	before := s
	s.Next(2, []string{"a2"}, key)
	if got := fmt.Sprint(s.Values(), before.Values()); got != "[a2 b1] [a1 b1]" {
		t.Errorf("got %s, want [a2 b1] and in the copy [a1 b1]", got)
	}
}

func TestNextAgainstTheHistory(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		maxMisses := 1 + r.IntN(4)
		var s Lingering[int, int]
		var history [][]int
		for range 50 {
			answer := make([]int, r.IntN(6))
			for i := range answer {
				answer[i] = r.IntN(8)
			}
			history = append(history, answer)
			var want []int
			for _, a := range history[max(0, len(history)-maxMisses):] {
				want = append(want, a...)
			}
			slices.Sort(want)
			got := slices.Sorted(slices.Values(s.Next(maxMisses, answer, func(v int) int { return v })))
			if !slices.Equal(got, slices.Compact(want)) {
				t.Fatalf("seed %d, after %d, %v: got %v, want %v", seed, maxMisses, history, got, want)
			}
		}
	}
}
