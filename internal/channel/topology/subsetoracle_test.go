package topology

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// oracle chooses the addresses one after another, as in the description of gRFC A68.
func oracle(ranks map[string]uint64, size int) map[string]bool {
	chosen := make(map[string]bool)
	for range min(size, len(ranks)) {
		best := ""
		for address, rank := range ranks {
			if !chosen[address] && (best == "" || rank < ranks[best] || rank == ranks[best] && address < best) {
				best = address
			}
		}
		chosen[best] = true
	}
	return chosen
}

func TestChooseSubsetAgainstOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		ranks := make(map[string]uint64)
		for range r.IntN(12) {
			ranks[string(rune('a'+r.IntN(12)))] = uint64(r.IntN(6)) // there are few values, so that ranks collide
		}
		size := 1 + r.IntN(8)
		if got, want := chooseSubset(ranks, size), oracle(ranks, size); !maps.Equal(got, want) {
			t.Fatalf("chooseSubset(%v, %d) = %v, want %v", ranks, size, got, want)
		}
	}
}
