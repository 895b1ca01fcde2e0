package edf

import (
	"math/bits"
	"slices"
)

const (
	// maxCycle is the longest period, in picks, that we keep for reuse.
	maxCycle = 65536
	// Reusing a cycle costs an allocation, so we repeat shorter periods until a stretch has this
	// many picks.
	minCycle = 512
)

// FirstSize returns how many picks to compute first. It's small so that schedulers are cheap to
// create.
func FirstSize(entries int) uint64 { return uint64(min(max(entries, 256), 16384)) }

// LaterSize returns how many picks to compute after that. We need enough of them that visiting
// every class hardly adds to the cost of a pick, but not so many that a pick has to wait long for a
// stretch.
func (q *Sequence) LaterSize() uint64 { return uint64(min(max(len(q.classes)/2, 4096), 32768)) }

type Stretch struct {
	Picks  []uint32
	Begin  uint64
	Cyclic bool // Picks is made of whole periods and can be repeated
}

// Next computes the next stretch of roughly size picks.
func (q *Sequence) Next(size uint64, s *Scratch) Stretch {
	next := Stretch{Begin: q.end}
	if q.period > maxCycle {
		if next.Picks = q.stretch(q.length(size), s); len(next.Picks) == 0 {
			q.end = q.earliest() - 1
			next.Picks = q.stretch(q.length(size), s)
		}
		return next
	}
	for len(next.Picks) == 0 && !q.cycleIsComplete() {
		next.Picks = q.stretch(min(q.length(size), uint64(Full)-q.end), s)
		q.extendCycle(next.Picks)
	}
	if n := uint64(len(next.Picks)); n == 0 || n == q.period {
		return q.cyclicStretch()
	}
	return next
}

func (q *Sequence) length(size uint64) uint64 {
	hi, lo := bits.Mul64(uint64(Full), min(size, q.period))
	length, _ := bits.Div64(hi, lo, q.period)
	return length
}

// extendCycle takes the slice over if the cycle is still empty. That saves a copy when the stretch
// is a whole period.
func (q *Sequence) extendCycle(picks []uint32) {
	if q.cycle == nil {
		q.cycle = picks
		return
	}
	q.cycle = append(slices.Grow(q.cycle, int(q.period)-len(q.cycle)), picks...)
}

func (q *Sequence) cycleIsComplete() bool { return uint64(len(q.cycle)) == q.period }

func (q *Sequence) cyclicStretch() Stretch {
	next := Stretch{Picks: q.cycle, Cyclic: true}
	for len(next.Picks) < minCycle {
		next.Picks = append(next.Picks, q.cycle...)
	}
	return next
}

func (q *Sequence) stretch(length uint64, s *Scratch) []uint32 {
	x := q.collect(s, length)
	q.end += length
	s.sort()
	return q.expand(x, s)
}
