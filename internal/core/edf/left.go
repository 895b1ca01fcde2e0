package edf

import "math/bits"

// Left is the part of its interval 1/weight that an entry still waits before it is
// picked next: (deadline - now) · weight, in (0, 1], as a fixed-point number in which
// Full is 1. It has no unit, so it means the same at another weight and beside other
// entries. So a position can go from one scheduler to the next.
//
// Of entries whose deadline is that of the last pick, some may have been picked and
// some not. So that none of these has a Left of 0, the Lefts of a position are counted
// from one unit of time (2^-62 of a period, see Scheduler) before that deadline, and
// those of the entries already picked are above Full by that unit, at most by 2^-30.
// Pass such values on as they are.
type Left uint64

// Full is the Left of an entry that waits its whole interval: one that was just
// picked, and one in a new scheduler as A34 starts it.
const Full Left = 1 << 62

// RandomLeft returns a Left uniformly distributed over (0, 1]; random returns numbers
// uniformly distributed from 0 to below n.
func RandomLeft(random func(n uint64) uint64) Left { return Left(random(uint64(Full))) + 1 }

// Position is a place in the sequence: all deadlines up to now have passed, and of
// those one unit later the ones of entries with indexes up to last.
type Position struct {
	now  uint64
	last int
	skip uint64 // of the start: how many picks of the sequence lie before it
}

// startOf returns the position that the Lefts of entries describe, and whether Lefts
// above Full are part of it. They are if they belong to the first of the entries whose
// deadline is the very next unit, as Lefts gives them. If weights or order have changed
// so that they do not, they count as Full.
func startOf(entries []Entry, divisor uint64) (p Position, carried bool) {
	p = Position{last: -1}
	waiting := false // seen an entry that is next and has not been picked
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

// Skip returns how many picks of the sequence lie before its start.
func (p Position) Skip() uint64 { return p.skip }

// Lefts returns the Left of each of size entries at position p.
func (q *Sequence) Lefts(p Position, size int) []Left {
	lefts := make([]Left, size)
	for i := range lefts {
		lefts[i] = q.leftOf(i, p)
	}
	return lefts
}

// leftOf returns the Left of the entry at index i at position p.
func (q *Sequence) leftOf(i int, p Position) Left {
	c := q.of(i)
	left := Left(q.leftAt(c, p.now))
	if i <= p.last && left <= Left(q.classes[c].weight) {
		left += Full
	}
	return left
}

// After returns the position after the given number of picks of a stretch: now is the
// deadline of the last of them.
func (q *Sequence) After(s Stretch, taken uint64) Position {
	if taken == 0 {
		return Position{now: s.Begin, last: -1}
	}
	begin := uint64(0)
	if s.Cyclic {
		begin = (taken - 1) / q.period * q.period
	}
	last := s.Picks[taken-1]
	times := uint64(0)
	for _, p := range s.Picks[begin:taken] {
		if p == last {
			times++
		}
	}
	c := q.of(int(last))
	// The deadline is first + (times - 1) intervals, rounded up; now is a unit less.
	hi, lo := bits.Mul64(times-1, uint64(Full))
	lo, carry := bits.Add64(lo, q.leftAt(c, s.Begin)-1, 0)
	units, _ := bits.Div64(hi+carry, lo, uint64(q.classes[c].weight))
	return Position{now: s.Begin + units, last: int(last)}
}
