package weighted

import (
	"math/rand/v2"

	core "github.com/understudy-lb/understudy/internal/core/edf"
	"github.com/understudy-lb/understudy/internal/edf"
)

// Place is a child's place in the sequence, from picker to picker: what is left of its
// interval between two picks.
type Place struct {
	left  edf.Left
	drawn bool // at random, and no picker with the child has picked since
}

// NewPlace returns the place of a child that no picker has had: at the beginning of
// its interval, as in gRFC A34, or at a random point of it.
func NewPlace(random bool) Place {
	if random {
		return Place{left: core.RandomLeft(rand.Uint64N), drawn: true}
	}
	return Place{left: edf.Full}
}

// schedule returns the entries of children with these weights and places.
//
// Where all places are drawn and nothing was picked since, it starts at a random pick
// instead of a random moment: one child, drawn by weight, counts as just picked. The
// difference shows with few children: of the moments before a pick of weights 1 and 9,
// 94.4 % are before one of the heavier, but of the picks only 90 % are. The places
// stay as they are, so that a picker that is replaced unused leaves no trace.
func schedule(weights []uint32, places []*Place) []edf.Entry {
	entries := make([]edf.Entry, len(places))
	drawn, sum := true, uint64(0)
	for i, p := range places {
		entries[i] = edf.Entry{Weight: weights[i], Left: p.left}
		drawn = drawn && p.drawn
		sum += uint64(weights[i])
	}
	if drawn {
		entries[draw(weights, sum)].Left = edf.Full
	}
	return entries
}

// draw returns an index of weights, which sum to sum, each with its weight's
// probability.
func draw(weights []uint32, sum uint64) int {
	below := rand.Uint64N(sum)
	for i, w := range weights {
		if below < uint64(w) {
			return i
		}
		below -= uint64(w)
	}
	return len(weights) - 1 // not reached
}
