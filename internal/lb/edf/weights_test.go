package edf_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/understudy-lb/understudy/internal/lb/edf"
)

type distribution struct {
	name   string
	weight func(r *rand.Rand, i, n int) uint32
}

var distributions = []distribution{
	{"equal", func(_ *rand.Rand, _, n int) uint32 { return uint32(n) }},
	{"1..100", func(r *rand.Rand, _, _ int) uint32 { return 1 + r.Uint32N(100) }},
	{"1..3", func(r *rand.Rand, _, _ int) uint32 { return 1 + r.Uint32N(3) }},
	{"powers of two", func(r *rand.Rand, _, _ int) uint32 { return 1 << r.UintN(18) }},
	{"primes near 2^16", func(r *rand.Rand, _, _ int) uint32 { return primes[r.IntN(len(primes))] }},
	{"zipf", func(_ *rand.Rand, i, _ int) uint32 { return max(1, 1_000_000/uint32(1+i)) }},
	{"harmonic", func(_ *rand.Rand, i, n int) uint32 { return max(1, uint32(n)/uint32(1+i)) }},
	{"one huge", func(_ *rand.Rand, i, n int) uint32 {
		if i == n/2 {
			return -uint32(n) // 2^32-n, so that the weights add up to 2^32-1
		}
		return 1
	}},
	{"UQ1.31", func(r *rand.Rand, _, n int) uint32 {
		return max(1, uint32(2*r.Float64()*(1<<31)/float64(n)))
	}},
	{"close", func(r *rand.Rand, _, n int) uint32 { return uint32((1<<32-1)/n) - r.Uint32N(100) }},
}

var primes = []uint32{65407, 65413, 65419, 65423, 65437, 65447, 65449, 65479, 65497, 65519, 65521, 65537, 65539, 65543}

func (d distribution) weights(r *rand.Rand, n int) []uint32 {
	weights := make([]uint32, n)
	for i := range weights {
		weights[i] = d.weight(r, i, n)
	}
	return weights
}

// oracleShare is the divisor by which the number of sets is reduced for comparisons with the
// oracle.
var oracleShare = 1

// forRandomSets runs check for random sets of weights, most of which are small. The environment
// variable EDF_SETS sets the number of sets for each distribution.
func forRandomSets(t *testing.T, sets int, check func(t *testing.T, r *rand.Rand, weights []uint32)) {
	sets = max(1, sets/oracleShare)
	if fromEnv, err := strconv.Atoi(os.Getenv("EDF_SETS")); err == nil {
		sets = fromEnv
	}
	for _, d := range distributions {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(sets) {
				r := rand.New(rand.NewPCG(seed, 34))
				n := 1 + r.IntN(20)
				switch {
				case seed%100 == 99:
					n = 1 + r.IntN(5000)
				case seed%10 == 9:
					n = 1 + r.IntN(200)
				}
				check(t, r, d.weights(r, n))
				if t.Failed() {
					t.Fatalf("seed %d, %d entries", seed, n)
				}
			}
		})
	}
}

func randomCount(r *rand.Rand, n int) int {
	if r.IntN(20) == 0 {
		return n + 10_000
	}
	return 2*n + r.IntN(1000)
}

func entriesOf(weights []uint32, lefts []edf.Left) []edf.Entry {
	entries := make([]edf.Entry, len(weights))
	for i, w := range weights {
		entries[i].Weight = w
		if lefts != nil {
			entries[i].Left = lefts[i]
		}
	}
	return entries
}

func picks(s *edf.Scheduler, n int) []int {
	got := make([]int, n)
	for i := range got {
		got[i] = s.Next()
	}
	return got
}

func comparePicks(t *testing.T, got, want []int) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			from := max(0, i-5)
			t.Errorf("pick %d is %d, want %d (from %d on: got %v, want %v)", i, got[i], want[i],
				from, got[from:min(i+5, len(got))], want[from:min(i+5, len(want))])
			return
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s", fmt.Sprint(len(got), " picks, want ", len(want)))
	}
}
