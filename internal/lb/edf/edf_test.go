package edf_test

import (
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/understudy-lb/understudy/internal/lb/edf"
)

func TestOrder(t *testing.T) {
	for _, tc := range []struct {
		name    string
		weights []uint32
		want    []int
	}{
		{"equal weights are picked in the order of the entries", []uint32{5, 5, 5}, []int{0, 1, 2, 0, 1, 2}},
		{"a tie goes to the lower offset", []uint32{1, 2}, []int{1, 0, 1, 1, 0, 1}},
		{"the tenth pick of weight ten ties with weight one", []uint32{1, 10},
			[]int{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1}},
		{"a tie of few among many", append([]uint32{2, 4, 2}, slices.Repeat([]uint32{1}, 4000)...), []int{1, 0, 1, 2, 1}},
		{"zero counts as one", []uint32{0, 1}, []int{0, 1, 0, 1}},
		{"one entry", []uint32{7}, []int{0, 0, 0}},
		{"no entry", nil, []int{-1, -1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := picks(edf.New(entriesOf(tc.weights, nil)), len(tc.want)); !slices.Equal(got, tc.want) {
				t.Errorf("weights %v: picked %v, want %v", tc.weights, got, tc.want)
			}
		})
	}
}

// The picks must be the same as those of the priority queue in gRFC A34, computed with rational
// numbers instead of doubles.
func TestFollowsA34(t *testing.T) {
	forRandomSets(t, 300, func(t *testing.T, r *rand.Rand, weights []uint32) {
		n := randomCount(r, len(weights))
		comparePicks(t, picks(edf.New(entriesOf(weights, nil)), n), newOracle(weights).picks(n))
	})
}

// A period has up to 2^32 picks. The test therefore begins shortly before the end of a period,
// where the Lefts are known exactly.
func TestFollowsA34NearEndOfPeriod(t *testing.T) {
	forRandomSets(t, 100, func(t *testing.T, r *rand.Rand, weights []uint32) {
		n := randomCount(r, len(weights))
		divisor := new(big.Int)
		for _, w := range weights {
			divisor.GCD(nil, nil, divisor, big.NewInt(int64(w)))
		}
		for i := range weights {
			weights[i] /= uint32(divisor.Uint64())
		}
		now := uint64(edf.Full) - r.Uint64N(uint64(edf.Full)/uint64(1+r.IntN(1<<20)))
		o := newOracle(weights)
		lefts := make([]edf.Left, len(weights))
		for _, e := range o.entries {
			w := uint64(weights[e.orderOffset])
			hi, lo := bits.Mul64(now, w)
			passed := hi<<2 | lo>>62
			lefts[e.orderOffset] = edf.Full - edf.Left(lo&uint64(edf.Full-1))
			e.deadline.SetUint64(passed + 1)
		}
		o.init()
		comparePicks(t, picks(edf.New(entriesOf(weights, lefts)), n), o.picks(n))
	})
}

// Each period must have the same picks.
func TestNeverDrifts(t *testing.T) {
	for _, weights := range [][]uint32{{3, 3}, {1, 10}, {1, 3}, {7, 5, 3, 100, 99}} {
		var period int
		for _, w := range weights {
			period += int(w)
		}
		if weights[0] == weights[1] {
			period = len(weights)
		}
		s := edf.New(entriesOf(weights, nil))
		want := newOracle(weights).picks(period)
		for i := range 3_000_000 {
			if got := s.Next(); got != want[i%period] {
				t.Fatalf("weights %v: pick %d is %d, want %d", weights, i, got, want[i%period])
			}
		}
	}
}
