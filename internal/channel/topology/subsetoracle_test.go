package topology

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// oracle chooses the items one after another, as in the description of gRFC A68.
func oracle(items []subsetItem[int], size int) []bool {
	chosen, remaining := make([]bool, len(items)), slices.Clone(items)
	for range size {
		best := -1
		for i, item := range remaining {
			if !chosen[i] && (best < 0 || item.Rank < remaining[best].Rank) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		for i, item := range items {
			chosen[i] = chosen[i] || item.Key == items[best].Key
		}
	}
	return chosen
}

func TestChooseSubsetAgainstOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		items := make([]subsetItem[int], r.IntN(12))
		for i := range items {
			items[i] = subsetItem[int]{uint64(r.IntN(6)), r.IntN(10)} // there are few values, so that ranks and keys collide
		}
		size := 1 + r.IntN(8)
		if got, want := chooseSubset(items, size), oracle(items, size); !slices.Equal(got, want) {
			t.Fatalf("chooseSubset(%v, %d) = %v, want %v", items, size, got, want)
		}
	}
}

func TestChooseSubset(t *testing.T) {
	for _, test := range []struct {
		items []subsetItem[string]
		want  []bool
	}{
		{[]subsetItem[string]{{30, "a"}, {10, "b"}, {20, "c"}}, []bool{false, true, true}},
		{[]subsetItem[string]{{10, "b"}, {20, "c"}, {15, "d"}}, []bool{true, false, true}},
		{[]subsetItem[string]{{10, "b"}}, []bool{true}},
		{nil, nil},
	} {
		if got := chooseSubset(test.items, 2); !slices.Equal(got, test.want) {
			t.Errorf("chooseSubset(%v, 2) = %v, want %v", test.items, got, test.want)
		}
	}
}
