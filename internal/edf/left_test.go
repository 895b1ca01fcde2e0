package edf_test

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/understudy-lb/understudy/internal/edf"
)

func randomLefts(r *rand.Rand, n int) []edf.Left {
	lefts := make([]edf.Left, n)
	for i := range lefts {
		switch r.IntN(4) {
		case 0:
			lefts[i] = edf.Full / edf.Left(1+r.IntN(4))
		case 1:
			lefts[i] = 1 + edf.Left(r.Uint64N(1<<33))
		default:
			lefts[i] = 1 + edf.Left(r.Uint64N(uint64(edf.Full)))
		}
	}
	return lefts
}

func TestFollowsDecision7(t *testing.T) {
	forRandomSets(t, 100, func(t *testing.T, r *rand.Rand, weights []uint32) {
		n := min(stretch(r, len(weights)), 6000)
		lefts := randomLefts(r, len(weights))
		rats := make([]*big.Rat, len(lefts))
		for i, l := range lefts {
			rats[i] = leftRat(l)
		}
		same(t, picks(edf.New(entriesOf(weights, lefts)), n), newOracleFrom(weights, rats).picks(n))
	})
}

// Several schedulers in a row, each created with the Lefts of the previous one, must make the same
// picks as a single scheduler (docs/scenarios.md, W2).
func TestGoesOnPickForPick(t *testing.T) {
	forRandomSets(t, 100, func(t *testing.T, r *rand.Rand, weights []uint32) {
		var lefts []edf.Left
		if r.IntN(2) == 0 {
			lefts = randomLefts(r, len(weights))
		}
		n := stretch(r, len(weights))
		want := picks(edf.New(entriesOf(weights, lefts)), n)
		var got []int
		for s := edf.New(entriesOf(weights, lefts)); len(got) < n; {
			most := 5
			if len(weights) > 100 || r.IntN(10) == 0 {
				most = n
			}
			now := min(r.IntN(most+1), n-len(got))
			got = append(got, picks(s, now)...)
			if said := s.Picked(); len(weights) > 1 && said != uint64(now) {
				t.Errorf("Picked() = %d, want %d", said, now)
			}
			if len(weights) > 1 {
				want := make([]uint64, len(weights))
				for _, i := range got[len(got)-now:] {
					want[i]++
				}
				if said := s.Counts(); !slices.Equal(said, want) {
					t.Errorf("Counts() = %v, want %v", said, want)
				}
			}
			s = edf.New(entriesOf(weights, s.Lefts()))
		}
		same(t, got, want)
	})
}

// After a change of weights, the number of picks of each entry must not differ from the oracle's by
// more than one.
func TestChangesFollowDecision7(t *testing.T) {
	forRandomSets(t, 30, func(t *testing.T, r *rand.Rand, weights []uint32) {
		weights = weights[:min(len(weights), 50)]
		lefts := randomLefts(r, len(weights))
		rats := make([]*big.Rat, len(lefts))
		for i, l := range lefts {
			rats[i] = leftRat(l)
		}
		ahead := make([]int, len(weights))
		for range 20 {
			s, o := edf.New(entriesOf(weights, lefts)), newOracleFrom(weights, rats)
			for range 1 + r.IntN(30) {
				ahead[s.Next()]++
				ahead[o.pick()]--
			}
			lefts, rats = s.Lefts(), o.lefts()
			for i := range weights {
				if ahead[i] < -1 || ahead[i] > 1 {
					t.Errorf("entry %d of weights %v is %d picks ahead", i, weights, ahead[i])
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
				ahead[i], ahead[j] = ahead[j], ahead[i]
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

func TestReorderedWithinATie(t *testing.T) {
	s := edf.New([]edf.Entry{{Weight: 1}, {Weight: 1}})
	s.Next()
	lefts := s.Lefts()
	s = edf.New([]edf.Entry{{Weight: 1, Left: lefts[1]}, {Weight: 1, Left: lefts[0]}})
	same(t, picks(s, 3), []int{0, 1, 0})
}
