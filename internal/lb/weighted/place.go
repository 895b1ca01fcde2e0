package weighted

import (
	"math/rand/v2"

	core "github.com/understudy-lb/understudy/internal/core/edf"
	"github.com/understudy-lb/understudy/internal/lb/edf"
)

// Position is a child's position in the sequence of picks, i.e. what's left of its interval until
// its next pick. Each picker hands the positions over to the next one.
type Position struct {
	left           edf.Left
	isUnusedRandom bool // left is random, and no picker has used it yet
}

// NewPosition returns the position of a new child. That's the start of its interval, as in gRFC
// A34, or a random point.
func NewPosition(random bool) Position {
	if random {
		return Position{left: core.RandomLeft(rand.Uint64N), isUnusedRandom: true}
	}
	return Position{left: edf.Full}
}

// schedule creates a scheduler that starts at the given positions. If they're all random and
// unused, we pretend that a random child, chosen by weight, was just picked. We can't just start at
// a random time, because then the first picks wouldn't follow the weights. For example, with
// weights 1 and 9, the heavier child would be next in 94.4 % of the cases, but it should only get
// 90 % of the picks.
//
// The positions themselves aren't modified, so if a picker is replaced before its first pick, it
// leaves no trace.
func schedule(weights []uint32, position func(i int) *Position) *edf.Scheduler {
	return edf.Fill(len(weights), func(entries []edf.Entry) {
		allUnused, sum := true, uint64(0)
		for i, weight := range weights {
			p := position(i)
			entries[i] = edf.Entry{Weight: weight, Left: p.left}
			allUnused = allUnused && p.isUnusedRandom
			sum += uint64(weight)
		}
		if allUnused {
			entries[randomIndex(weights, sum)].Left = edf.Full
		}
	})
}

// randomIndex returns an index with a probability proportional to its weight. sum is the sum of all
// weights.
func randomIndex(weights []uint32, sum uint64) int {
	remaining := rand.Uint64N(sum)
	for i, w := range weights {
		if remaining < uint64(w) {
			return i
		}
		remaining -= uint64(w)
	}
	return len(weights) - 1 // can't happen
}
