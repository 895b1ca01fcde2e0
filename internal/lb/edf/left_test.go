package edf_test

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/understudy-lb/understudy/internal/lb/edf"
)

func randomLefts(r *rand.Rand, n int) []edf.Left {
	lefts := make([]edf.Left, n)
	for i := range lefts {
		switch r.IntN(4) {
		case 0:
			lefts[i] = edf.Full / edf.Left(1+r.IntN(4))
		case 1:
			lefts[i] = 1 + edf.Left(r.Uint64N(1<<r.IntN(34)))
		default:
			lefts[i] = 1 + edf.Left(r.Uint64N(uint64(edf.Full)))
		}
	}
	return lefts
}

func TestFollowsDecision7(t *testing.T) {
	forRandomSets(t, 100, func(t *testing.T, r *rand.Rand, weights []uint32) {
		n := min(randomCount(r, len(weights)), 6000)
		lefts := randomLefts(r, len(weights))
		rats := make([]*big.Rat, len(lefts))
		for i, l := range lefts {
			rats[i] = leftRat(l)
		}
		comparePicks(t, picks(edf.New(entriesOf(weights, lefts)), n), newOracleFrom(weights, rats).picks(n))
	})
}

// Several successive schedulers, each created with the Lefts of the previous scheduler, must
// together make the same picks as a single scheduler.
func TestSchedulerContinuesWithLefts(t *testing.T) {
	forRandomSets(t, 100, func(t *testing.T, r *rand.Rand, weights []uint32) {
		var lefts []edf.Left
		if r.IntN(2) == 0 {
			lefts = randomLefts(r, len(weights))
		}
		n := randomCount(r, len(weights))
		want := picks(edf.New(entriesOf(weights, lefts)), n)
		var got []int
		for s := edf.New(entriesOf(weights, lefts)); len(got) < n; {
			maxPicks := 5
			if len(weights) > 100 || r.IntN(10) == 0 {
				maxPicks = n
			}
			now := min(r.IntN(maxPicks+1), n-len(got))
			got = append(got, picks(s, now)...)
			if picked := s.Picked(); len(weights) > 1 && picked != uint64(now) {
				t.Errorf("Picked() = %d, want %d", picked, now)
			}
			if len(weights) > 1 {
				want := make([]uint64, len(weights))
				for _, i := range got[len(got)-now:] {
					want[i]++
				}
				if counts := s.Counts(); !slices.Equal(counts, want) {
					t.Errorf("Counts() = %v, want %v", counts, want)
				}
			}
			s = edf.New(entriesOf(weights, s.Lefts()))
		}
		comparePicks(t, got, want)
	})
}

// After changes of the weights, the number of picks of each entry must not differ by more than one
// from the number that the oracle makes.
func TestChangesFollowDecision7(t *testing.T) {
	forRandomSets(t, 30, func(t *testing.T, r *rand.Rand, weights []uint32) {
		weights = weights[:min(len(weights), 50)]
		lefts := randomLefts(r, len(weights))
		rats := make([]*big.Rat, len(lefts))
		for i, l := range lefts {
			rats[i] = leftRat(l)
		}
		surplus := make([]int, len(weights))
		for range 20 {
			s, o := edf.New(entriesOf(weights, lefts)), newOracleFrom(weights, rats)
			for range 1 + r.IntN(30) {
				surplus[s.Next()]++
				surplus[o.pick()]--
			}
			lefts, rats = s.Lefts(), o.lefts()
			for i := range weights {
				if surplus[i] < -1 || surplus[i] > 1 {
					t.Errorf("entry %d of weights %v is %d picks ahead", i, weights, surplus[i])
					return
				}
				if r.IntN(3) == 0 {
					weights[i] = 1 + r.Uint32N(100)
				}
			}
			r.Shuffle(len(weights), func(i, j int) {
				weights[i], weights[j] = weights[j], weights[i]
				lefts[i], lefts[j] = lefts[j], lefts[i]
				rats[i], rats[j] = rats[j], rats[i]
				surplus[i], surplus[j] = surplus[j], surplus[i]
			})
		}
	})
}

func TestLeftsOfFewEntries(t *testing.T) {
	if got := edf.New(nil).Lefts(); len(got) != 0 {
		t.Errorf("Lefts of no entries: %v", got)
	}
	s := edf.New([]edf.Entry{{Weight: 3, Left: 5}})
	if got := s.Lefts(); got[0] != 5 {
		t.Errorf("Left of one entry before its first pick: %d, want 5", got[0])
	}
	s.Next()
	if got := s.Lefts(); got[0] != edf.Full {
		t.Errorf("Left of one entry after a pick: %d, want %d (Full)", got[0], edf.Full)
	}
}

func TestReorderedEntriesWithEqualDeadlines(t *testing.T) {
	s := edf.New([]edf.Entry{{Weight: 1}, {Weight: 1}})
	s.Next()
	lefts := s.Lefts()
	s = edf.New([]edf.Entry{{Weight: 1, Left: lefts[1]}, {Weight: 1, Left: lefts[0]}})
	comparePicks(t, picks(s, 3), []int{0, 1, 0})
}
