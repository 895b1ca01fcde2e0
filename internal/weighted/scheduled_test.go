package weighted

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
)

func counting(children string, weights ...uint32) (*Picker, []string) {
	var pickers []balancer.Picker
	var places []*Position
	var names []string
	for _, c := range children {
		place := NewPosition(false)
		pickers, places, names = append(pickers, &Counting{Picker: base.NewErrPicker(nil)}), append(places, &place), append(names, string(c))
	}
	return New(pickers, weights, places), names
}

func TestScheduledPicksOfAllPickers(t *testing.T) {
	var s Scheduled[string]
	pick := func(p *Picker, n int) {
		for range n {
			p.Pick(balancer.PickInfo{})
		}
	}
	want := func(children string, counts ...uint64) {
		t.Helper()
		if got := s.Now(splitted(children))(); !slices.Equal(got, counts) {
			t.Errorf("the picks of %s are %v, want %v", children, got, counts)
		}
	}
	want("ab", 0, 0)
	p, names := counting("ab", 3, 1)
	s.Use(p, names)
	now := s.Now(names)
	pick(p, 400)
	want("ab", 300, 100)
	want("xb", 0, 100)
	if got := fmt.Sprint(now()); got != "[300 100]" {
		t.Errorf("the function that Now returned before the picks returns %s, want the current picks", got)
	}
	p, names = counting("b", 1)
	s.Use(p, names)
	pick(p, 7)
	want("ab", 300, 107)
	p, names = counting("abc", 1, 1, 2)
	s.Use(p, names)
	pick(p, 8)
	want("abc", 302, 109, 4)
	s.Forget("c")
	s.Use(nil, nil)
	want("abc", 302, 109, 0)
	s.Forget("b")
	want("abc", 302, 0, 0)
	if len(s.over) != 1 || s.gone != nil {
		t.Errorf("the counts are %v and the removed children %v, want only a", s.over, s.gone)
	}
}

func splitted(children string) (names []string) {
	for _, c := range children {
		names = append(names, string(c))
	}
	return names
}
