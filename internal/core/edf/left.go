package edf

import "math/bits"

// Left is the time until the next pick of an entry, as a fraction of its interval 1/weight:
// (deadline - now) · weight. It is a fixed-point number in (0, 1], in which Full is 1. A Left has
// no unit, so it keeps its meaning if the weight or the other entries change, and we can carry a
// position from one scheduler to the next.
//
// Several entries may have the same deadline as the last pick, and some of them may not have been
// picked yet. To avoid a Left of 0 for these, we measure from one unit of time (2^-62 of a period;
// see the package comment) before that deadline. The Left of an entry that has been picked then
// exceeds Full by the equivalent of that unit, which is at most 2^-30. Pass such values on
// unchanged.
type Left uint64

// Full is the Left of an entry that waits its whole interval, as each entry does after its pick.
const Full Left = 1 << 62

// RandomLeft returns a Left that is uniformly distributed over (0, 1]. random must return
// uniformly distributed numbers in [0, n).
func RandomLeft(random func(n uint64) uint64) Left { return Left(random(uint64(Full))) + 1 }

// Position is a point between two picks of the sequence. All deadlines up to now have passed, and
// so have the deadlines at now + 1 of entries with indexes up to last.
type Position struct {
	now  uint64
	last int
	skip uint64 // number of picks before this position; set only in the position that New returns
}

// A Left above Full means that the entry has already been picked for its deadline in the next unit
// of time. Such entries must precede all others with that deadline, as in the result of Lefts.
// After a change of the weights or of the order, this may no longer be so: then we return false,
// and Lefts above Full count as Full.
func startOf(entries []Entry, divisor uint64) (p Position, valid bool) {
	p = Position{last: -1}
	waiting := false
	for i, e := range entries {
		left, w := e.left(), Left(e.weight()/divisor)
		switch {
		case left <= w:
			waiting = true
		case left > Full && (waiting || left-Full > w):
			return Position{last: -1}, false
		case left > Full:
			p.last = i
			p.skip++
		}
	}
	return p, true
}

// Skip returns the number of picks of the sequence before its start position.
func (p Position) Skip() uint64 { return p.skip }

// Lefts returns the Lefts of the first size entries at position p.
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
	if i <= p.last && left <= Left(q.classes[c].weight) {
		left += Full
	}
	return left
}

// After returns the position after the first taken picks of a stretch. The time of the position is
// one unit before the deadline of the last of these picks.
func (q *Sequence) After(s Stretch, taken uint64) Position {
	if taken == 0 {
		return Position{now: s.Begin, last: -1}
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
	// The deadline is first + (times - 1) intervals, rounded up, and now is one unit before it.
	hi, lo := bits.Mul64(occurrences-1, uint64(Full))
	lo, carry := bits.Add64(lo, q.leftAt(c, s.Begin)-1, 0)
	units, _ := bits.Div64(hi+carry, lo, uint64(q.classes[c].weight))
	return Position{now: s.Begin + units, last: int(last)}
}
