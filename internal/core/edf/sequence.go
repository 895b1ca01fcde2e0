package edf

import (
	"math/bits"
	"slices"
)

// Sequence makes the picks of a set of entries, stretch by stretch. It is a plain value
// without locks, for one goroutine at a time.
//
// A class is the entries of one weight and one phase; classes are numbered in the
// order of their first members.
type Sequence struct {
	// deadlines are, of each class, the next one not yet in a stretch. They are not in
	// classes because each stretch looks at all of them, and at few of the rest.
	deadlines []uint64
	classes   []class

	// Where each class has one member, its number is the member's index and these are
	// nil. Else the members of class c are members[bounds[c]:bounds[c+1]], in order.
	members []uint32
	bounds  []uint32
	classOf []uint32 // of each entry

	period uint64   // in picks
	end    uint64   // all deadlines up to here are in stretches
	cycle  []uint32 // the picks of the period so far, if it is kept
}

type class struct {
	step   uint64 // 2^62 / weight, rounded down
	weight uint32 // divided by the greatest common divisor
	slack  uint32 // deadline minus its exact value, times weight; below weight
}

// phase returns the Left, in (0, Full], of class c at time 0 and every whole period.
func (q *Sequence) phase(c uint32) uint64 {
	return q.leftAt(c, 0)
}

// leftAt returns the Left of class c, in (0, Full], where everything up to now has
// been picked and nothing after.
func (q *Sequence) leftAt(c uint32, now uint64) uint64 {
	k := q.classes[c]
	return inPeriod((q.deadlines[c]-now)*uint64(k.weight) - uint64(k.slack))
}

// inPeriod takes a multiple of Full off a Left so that it is in (0, Full].
func inPeriod(left uint64) uint64 { return (left-1)&uint64(Full-1) + 1 }

// first returns the first deadline of class c later than now.
func (q *Sequence) first(c uint32, now uint64) uint64 {
	w := uint64(q.classes[c].weight)
	return now + (q.leftAt(c, now)+w-1)/w
}

// earliest returns the earliest deadline that is not in a stretch yet.
func (q *Sequence) earliest() uint64 {
	wait := never
	for _, d := range q.deadlines {
		wait = min(wait, d-q.end)
	}
	return q.end + wait
}

// of returns the class of the entry at index i.
func (q *Sequence) of(i int) uint32 {
	if q.classOf == nil {
		return uint32(i)
	}
	return q.classOf[i]
}

// New returns the sequence of the entries, which it does not keep, and where picking
// starts.
func New(entries []Entry, s *Scratch) (Sequence, Position) {
	divisor := commonDivisor(entries)
	start, carried := startOf(entries, divisor)
	table := s.classTable(len(entries))
	q := &s.seq
	q.reset()
	for i, e := range entries {
		w, left := e.weight()/divisor, e.left()
		if carried || left <= Full {
			left = Left(inPeriod(uint64(left)))
		} else {
			left = Full
		}
		q.period += w
		q.classOf = append(q.classOf, table.class(q, uint32(i), uint32(w), uint64(left)))
	}
	return q.compact(), start
}

// add makes a class and returns its number.
func (q *Sequence) add(w uint32, left uint64) uint32 {
	d := (left + uint64(w) - 1) / uint64(w)
	q.deadlines = append(q.deadlines, d)
	q.classes = append(q.classes, class{
		step: uint64(Full) / uint64(w), weight: w, slack: uint32(d*uint64(w) - left),
	})
	return uint32(len(q.classes) - 1)
}

func (q *Sequence) reset() {
	*q = Sequence{deadlines: q.deadlines[:0], classes: q.classes[:0], classOf: q.classOf[:0]}
}

// compact returns a copy of q that takes only the memory it needs.
func (q *Sequence) compact() Sequence {
	c := Sequence{deadlines: slices.Clone(q.deadlines), classes: slices.Clone(q.classes), period: q.period}
	if len(q.classes) == len(q.classOf) {
		return c
	}
	c.classOf = slices.Clone(q.classOf)
	c.bounds = make([]uint32, len(q.classes)+1)
	for _, class := range c.classOf {
		c.bounds[class+1]++
	}
	for i := range q.classes {
		c.bounds[i+1] += c.bounds[i]
	}
	c.members = make([]uint32, len(c.classOf))
	filled := slices.Clone(c.bounds)
	for i, class := range c.classOf {
		c.members[filled[class]] = uint32(i)
		filled[class]++
	}
	return c
}

func commonDivisor(entries []Entry) uint64 {
	var d uint64
	for _, e := range entries {
		for w := e.weight(); w != 0; {
			d, w = w, d%w
		}
		if d == 1 {
			break
		}
	}
	return d
}

func (e Entry) weight() uint64 { return uint64(max(e.Weight, 1)) }

func (e Entry) left() Left {
	if e.Left == 0 {
		return Full
	}
	return e.Left
}

// classTable is a hash table, with open addressing, of the classes of a sequence. With a
// map in its place, a new scheduler of 10,000 entries costs 1.7 to 2.5 times as much.
type classTable struct {
	slots []uint32 // number + 1
	shift int
}

func (t classTable) class(q *Sequence, i, w uint32, left uint64) uint32 {
	hash := (left ^ uint64(w)*0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93
	for at := hash >> t.shift; ; at = (at + 1) & uint64(len(t.slots)-1) {
		number := t.slots[at]
		if number == 0 {
			t.slots[at] = q.add(w, left) + 1
			return t.slots[at] - 1
		}
		if c := number - 1; q.classes[c].weight == w && q.phase(c) == left {
			return c
		}
	}
}

func (s *Scratch) classTable(entries int) classTable {
	width := bits.Len(uint(2*entries)) + 1
	s.table = slices.Grow(s.table[:0], 1<<width)[:1<<width]
	clear(s.table)
	return classTable{slots: s.table, shift: 64 - width}
}
