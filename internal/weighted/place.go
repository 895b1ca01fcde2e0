package weighted

import (
	"math/rand/v2"

	core "github.com/understudy-lb/understudy/internal/core/edf"
	"github.com/understudy-lb/understudy/internal/edf"
)

// Position is a child's position in the sequence of picks: the fraction of its interval that
// remains until its next pick. Each picker passes the positions on to the next one.
type Position struct {
	left  edf.Left
	drawn bool
}

// NewPosition returns the position of a new child: the start of its interval, as in gRFC A34, or a
// random point.
func NewPosition(random bool) Position {
	if random {
		return Position{left: core.RandomLeft(rand.Uint64N), drawn: true}
	}
	return Position{left: edf.Full}
}

// schedule returns the scheduler's entries for children with the given weights and positions.
//
// If all positions are random and have not been used, the sequence does not start at a random time,
// but at a random pick: one child, drawn by weight, counts as just picked. The reason: with weights
// 1 and 9, the next pick after a random time is the heavier child in 94.4 % of the cases, although
// it gets only 90 % of the picks.
//
// The positions are not modified, so that a picker that is replaced before its first pick has no
// effect.
func schedule(weights []uint32, places []*Position) []edf.Entry {
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

// draw returns a random index of weights, whose sum is sum. The probability of an index is
// proportional to its weight.
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
