package edf_test

import (
	"slices"
	"testing"

	"github.com/understudy-lb/understudy/internal/edf"
)

func picks(s *edf.Scheduler, n int) []int {
	got := make([]int, n)
	for i := range got {
		got[i] = s.Next()
	}
	return got
}

func TestOrder(t *testing.T) {
	for _, tc := range []struct {
		name    string
		weights []uint32
		want    []int
	}{
		{"equal weights take turns in the entries' order", []uint32{5, 5, 5}, []int{0, 1, 2, 0, 1, 2}},
		{"a tie goes to the lower offset", []uint32{1, 2}, []int{1, 0, 1, 1, 0, 1}},
		{"the tenth of a weight of ten ties with a weight of one", []uint32{1, 10},
			[]int{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1}},
		{"zero counts as one", []uint32{0, 1}, []int{0, 1, 0, 1}},
		{"one entry", []uint32{7}, []int{0, 0, 0}},
		{"no entry", nil, []int{-1, -1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var entries []edf.Entry
			for _, w := range tc.weights {
				entries = append(entries, edf.Entry{Weight: w})
			}
			if got := picks(edf.New(entries), len(tc.want)); !slices.Equal(got, tc.want) {
				t.Errorf("weights %v: picked %v, want %v", tc.weights, got, tc.want)
			}
		})
	}
}

func TestGoesOnFromLefts(t *testing.T) {
	entries := []edf.Entry{{Weight: 3}, {Weight: 7}, {Weight: 7}, {Weight: 1}, {Weight: 10}}
	want := picks(edf.New(entries), 1000)
	s := edf.New(entries)
	for i, w := range want {
		if got := s.Next(); got != w {
			t.Fatalf("pick %d is %d, want %d", i, got, w)
		}
		for j, l := range s.Lefts() {
			entries[j].Left = l
		}
		s = edf.New(entries)
	}
}
