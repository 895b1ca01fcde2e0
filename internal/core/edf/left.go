package edf

import "math/bits"

// Left is how long an entry still has to wait for its next pick, as a fraction of its interval
// 1/weight: (deadline - now) · weight. It's a fixed-point number in (0, 1], where Full is 1. Since
// it has no unit, it still makes sense after the weight or the other entries have changed. That's
// how we carry a position over from one scheduler to the next.
//
// Several entries can have the same deadline as the last pick, and some of those may not have had
// their turn yet. To keep their Left from being 0, we measure from one unit of time before that
// deadline (2^-62 of a period; see the package comment). For entries that did have their turn, Left
// then exceeds Full by the equivalent of that unit, which is at most 2^-30. Pass such values on
// unchanged.
type Left uint64

// Full is a whole interval, which is what every entry has left right after its pick.
const Full Left = 1 << 62

// RandomLeft returns a Left that's uniformly distributed over (0, 1]. random must return uniformly
// distributed numbers in [0, n).
func RandomLeft(random func(n uint64) uint64) Left { return Left(random(uint64(Full))) + 1 }

// Position is a point between two picks. Everything with a deadline up to now has been picked, and
// so have those of the first tied entries whose deadline is now + 1.
type Position struct {
	now  uint64
	tied int
	skip uint64 // number of picks before this position; only set by New
}

// startOf returns the position where picking starts. An entry whose Left is above Full has already
// been picked for its deadline in the next unit of time. Lefts always returns such entries before
// any others with the same deadline, but that may no longer hold once the weights or the order have
// changed. In that case we return false, and the caller must treat every Left above Full as Full.
func startOf(entries []Entry, divisor uint64) (p Position, valid bool) {
	waiting := false
	for i, e := range entries {
		left, w := e.left(), Left(e.weight()/divisor)
		switch {
		case left <= w:
			waiting = true
		case left <= Full:
		case waiting || left-Full > w:
			return Position{}, false
		default:
			p.tied = i + 1
			p.skip++
		}
	}
	return p, true
}

func (p Position) Skip() uint64 { return p.skip }

// Lefts returns how much the first size entries have left at position p.
func (q *Sequence) Lefts(p Position, size int) []Left {
	lefts := make([]Left, size)
	for i := range lefts {
		lefts[i] = q.leftOf(i, p)
	}
	return lefts
}

func (q *Sequence) leftOf(i int, p Position) Left {
	c := q.classAt(i)
	left := Left(q.leftAt(c, p.now))
	if i < p.tied && left <= Left(q.classes[c].weight) {
		left += Full
	}
	return left
}

// After returns the position after the first taken picks of a stretch. That's one unit of time
// before the deadline of the last of these picks.
func (q *Sequence) After(s Stretch, taken uint64) Position {
	if taken == 0 {
		return Position{now: s.Begin}
	}
	begin := uint64(0)
	if s.Cyclic {
		begin = (taken - 1) / q.period * q.period
	}
	last := s.Picks[taken-1]
	occurrences := uint64(0)
	for _, p := range s.Picks[begin:taken] {
		if p == last {
			occurrences++
		}
	}
	c := q.classAt(int(last))
	// The deadline is first + (occurrences - 1) intervals, rounded up. We want one unit before it.
	hi, lo := bits.Mul64(occurrences-1, uint64(Full))
	lo += q.leftAt(c, s.Begin) - 1 // lo is a multiple of Full and this is less than Full, so there's no overflow
	units, _ := bits.Div64(hi, lo, uint64(q.classes[c].weight))
	return Position{now: s.Begin + units, tied: int(last) + 1}
}
