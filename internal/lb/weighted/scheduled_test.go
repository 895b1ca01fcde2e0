package weighted

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
)

func newCountingPicker(children string, weights ...uint32) (*Picker, []string) {
	var pickers []balancer.Picker
	var positions []*Position
	var names []string
	for _, c := range children {
		position := NewPosition(false)
		pickers, positions, names = append(pickers, &Counting{Picker: base.NewErrPicker(nil)}), append(positions, &position), append(names, string(c))
	}
	return newPicker(pickers, weights, positions), names
}

func TestScheduledPicksOfAllPickers(t *testing.T) {
	var s Scheduled[string]
	pick := func(p *Picker, n int) {
		for range n {
			p.Pick(balancer.PickInfo{})
		}
	}
	expectPicks := func(children string, counts ...uint64) {
		t.Helper()
		if got := s.Now(splitNames(children))(); !slices.Equal(got, counts) {
			t.Errorf("the picks of %s are %v, want %v", children, got, counts)
		}
	}
	expectPicks("ab", 0, 0)
	p, names := newCountingPicker("ab", 3, 1)
	s.Use(p, names)
	now := s.Now(names)
	pick(p, 400)
	expectPicks("ab", 300, 100)
	expectPicks("xb", 0, 100)
	if got := fmt.Sprint(now()); got != "[300 100]" {
		t.Errorf("the function that Now returned before the picks returns %s, want the current picks", got)
	}
	p, names = newCountingPicker("b", 1)
	s.Use(p, names)
	pick(p, 7)
	expectPicks("ab", 300, 107)
	p, names = newCountingPicker("abc", 1, 1, 2)
	s.Use(p, names)
	pick(p, 8)
	expectPicks("abc", 302, 109, 4)
	s.Forget("c")
	s.Use(nil, nil)
	expectPicks("abc", 302, 109, 0)
	s.Forget("b")
	expectPicks("abc", 302, 0, 0)
	if len(s.previous) != 1 || s.forgotten != nil {
		t.Errorf("the counts are %v and the removed children %v, want only a", s.previous, s.forgotten)
	}
}

func splitNames(children string) (names []string) {
	for _, c := range children {
		names = append(names, string(c))
	}
	return names
}
