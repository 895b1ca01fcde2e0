package edf

import (
	"math/bits"
	"math/rand/v2"
)

// Left is the part of its interval 1/weight that an entry still waits before it is
// picked next: (deadline - now) · weight, in (0, 1], as a fixed-point number in which
// Full is 1. It has no unit, so it means the same at another weight and beside other
// entries: that is how a position goes from one scheduler to the next.
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

// RandomLeft returns a Left uniformly distributed over (0, 1].
func RandomLeft() Left { return Left(rand.Uint64N(uint64(Full))) + 1 }

// position is a place in the sequence: all deadlines up to now have passed, and of
// those one unit later the ones of entries with indexes up to last.
type position struct {
	now  uint64
	last int
	skip uint64 // of the start: how many picks of the sequence lie before it
}

// startOf returns the position that the Lefts of entries describe, and whether those
// above Full are part of that: they are where they belong to the first of the
// entries whose deadline is the very next unit, as Lefts gives them. If weights or
// order have changed so that they do not, they are to be taken as Full.
func startOf(entries []Entry, divisor uint64) (p position, carried bool) {
	p = position{last: -1}
	waiting := false // seen an entry that is next and has not been picked
	for i, e := range entries {
		left, w := e.left(), Left(e.weight()/divisor)
		switch {
		case left <= w:
			waiting = true
		case left > Full && (waiting || left-Full > w):
			return position{last: -1}, false
		case left > Full:
			p.last = i
			p.skip++
		}
	}
	return p, true
}

// Lefts returns the Left of every entry at one moment: now is the deadline of the
// last pick handed out then, and later picks are not counted. A new scheduler of the
// same entries with these Lefts goes on pick for pick. It waits where a block is
// being made.
func (s *Scheduler) Lefts() []Left {
	b := s.current.Load()
	var taken uint64
	if b != nil {
		taken = min(b.next.Load(), uint64(len(b.picks)))
	}
	lefts := make([]Left, s.size)
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.start
	switch {
	case b != nil:
		p = s.seq.after(b, taken)
	case s.picked.Load():
		p.last = 0
		lefts[0] = Full
		return lefts
	}
	for i := range lefts {
		lefts[i] = s.seq.leftOf(i, p)
	}
	return lefts
}

// leftOf returns the Left of the entry at index i at position p.
func (q *sequence) leftOf(i int, p position) Left {
	c := q.of(i)
	left := Left(q.leftAt(c, p.now))
	if i <= p.last && left <= Left(q.classes[c].weight) {
		left += Full
	}
	return left
}

// after returns the position where the given number of picks of b were handed out.
func (q *sequence) after(b *block, taken uint64) position {
	if taken == 0 {
		return position{now: b.begin, last: -1}
	}
	begin := uint64(0)
	if b.cyclic {
		begin = (taken - 1) / q.period * q.period
	}
	last := b.picks[taken-1]
	times := uint64(0)
	for _, p := range b.picks[begin:taken] {
		if p == last {
			times++
		}
	}
	c := q.of(int(last))
	// The deadline is first + (times - 1) intervals, rounded up; now is a unit less.
	hi, lo := bits.Mul64(times-1, uint64(Full))
	lo, carry := bits.Add64(lo, q.leftAt(c, b.begin)-1, 0)
	units, _ := bits.Div64(hi+carry, lo, uint64(q.classes[c].weight))
	return position{now: b.begin + units, last: int(last)}
}
