package edf

import (
	"math/bits"
	"slices"
	"sync/atomic"
)

const (
	// maxCycle is the longest period, in picks, that is kept once it was all made.
	maxCycle = 64 << 10
	// minCycle is the least number of picks of a block that is used again: shorter
	// periods are written out several times, as changing blocks costs an allocation.
	minCycle = 512
	never    = ^uint64(0)
)

// firstBlock returns how many picks the first block is to have. It is part of what
// making a scheduler costs.
func firstBlock(size int) uint64 { return uint64(min(max(size, 256), 16<<10)) }

// laterBlock returns how many picks the blocks after the first are to have: enough
// that looking at each class once per block costs little for each pick, and few
// enough that making one does not keep a picker for long.
func (q *sequence) laterBlock() uint64 { return uint64(min(max(len(q.classes)/2, 4<<10), 32<<10)) }

// block is a stretch of the sequence. Blocks are never used again once they are
// replaced: a picker may be about to read one, so the garbage collector has them.
type block struct {
	next atomic.Uint64 // number of the next pick to hand out; runs past the end
	_    [120]byte     // next has a cache line, and its neighbour, of its own

	picks []uint32 // indexes of entries
	// ahead is the number of the pick that makes the next block.
	ahead  uint64
	begin  uint64 // the deadlines of its picks are later than this
	cyclic bool   // picks is a whole number of periods
}

// again returns a block that hands out the same picks once more.
func (b *block) again() *block {
	return &block{picks: b.picks, ahead: never, begin: b.begin, cyclic: true}
}

// block makes the block of about size picks that comes next in the sequence.
func (q *sequence) block(size uint64) *block {
	b := &block{begin: q.end}
	if q.period > maxCycle {
		b.picks = q.stretch(q.length(size))
		if len(b.picks) == 0 { // a pause of all entries
			q.end = q.earliest() - 1
			b.picks = q.stretch(q.length(size))
		}
		return b
	}
	for len(b.picks) == 0 && !q.whole() {
		b.picks = q.stretch(min(q.length(size), uint64(Full)-q.end))
		q.keep(b.picks)
	}
	if made := uint64(len(b.picks)); made == 0 || made == q.period {
		return q.cyclic()
	}
	return b
}

// length returns the time in which about size picks are made, at most a period.
func (q *sequence) length(size uint64) uint64 {
	hi, lo := bits.Mul64(uint64(Full), min(size, q.period))
	length, _ := bits.Div64(hi, lo, q.period)
	return length
}

// keep adds picks to the cycle. Where they are all of it, it costs nothing.
func (q *sequence) keep(picks []uint32) {
	if q.cycle == nil {
		q.cycle = picks
		return
	}
	q.cycle = append(slices.Grow(q.cycle, int(q.period)-len(q.cycle)), picks...)
}

// whole returns whether the cycle has all picks of a period.
func (q *sequence) whole() bool { return uint64(len(q.cycle)) == q.period }

// cyclic returns the block of the cycle, from the beginning of a period.
func (q *sequence) cyclic() *block {
	b := &block{picks: q.cycle, ahead: never, cyclic: true}
	for len(b.picks) < minCycle {
		b.picks = append(b.picks, q.cycle...)
	}
	q.cycle = nil
	return b
}

// stretch returns the picks whose deadlines are within length of where the last
// stretch ended.
func (q *sequence) stretch(length uint64) []uint32 {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	x := q.collect(s, length)
	q.end += length
	s.sort()
	picks := make([]uint32, 0, x.picks)
	return q.expand(picks, x, s)
}
