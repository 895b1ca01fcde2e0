package edf

import (
	"cmp"
	"math/bits"
	"slices"
)

func (q *Sequence) expand(x extent, s *Scratch) []uint32 {
	if q.members == nil && (x.shift == 0 || !x.anyEqualEncoded(s.events)) {
		// This is the common case: every event is exactly one pick, and equal deadlines are already
		// in order.
		picks := make([]uint32, len(s.events))
		for i, e := range s.events {
			picks[i] = x.class(e)
		}
		return picks
	}
	picks := make([]uint32, 0, max(x.picks, len(s.events)))
	for events := s.events; len(events) > 0; {
		n := 1
		for n < len(events) && x.equalEncoded(events[0], events[n]) {
			n++
		}
		if n == 1 {
			picks = q.appendMembers(picks, x.class(events[0]))
		} else {
			picks = q.appendEqual(picks, x, s, events[:n])
		}
		events = events[n:]
	}
	return picks
}

func (x extent) equalEncoded(a, b uint64) bool { return a>>x.idBits == b>>x.idBits }

func (x extent) anyEqualEncoded(sorted []uint64) bool {
	for i := 1; i < len(sorted); i++ {
		if x.equalEncoded(sorted[i-1], sorted[i]) {
			return true
		}
	}
	return false
}

func (q *Sequence) membersOf(c uint32) []uint32 { return q.members[q.bounds[c]:q.bounds[c+1]] }

func (q *Sequence) appendMembers(picks []uint32, c uint32) []uint32 {
	if q.members == nil {
		return append(picks, c)
	}
	members := q.membersOf(c)
	if len(members) == 1 { // the common case, as entries with large weights get most picks and rarely share a class
		return append(picks, members[0])
	}
	return append(picks, members...)
}

func (q *Sequence) appendEqual(picks []uint32, x extent, s *Scratch, events []uint64) []uint32 {
	if x.shift == 0 {
		return q.appendTied(picks, x, s, events)
	}
	// Two events of the same class never have the same encoded deadline. So to get the exact
	// deadline of an event, we look for the first one of its class at or after the encoded
	// deadline.
	exact := func(e uint64) uint64 { return q.nextDeadline(x.class(e), x.begin+e>>x.idBits<<x.shift-1) }
	slices.SortFunc(events, func(a, b uint64) int {
		return cmp.Or(int(exact(a)-exact(b)), cmp.Compare(a, b))
	})
	for len(events) > 0 {
		n := 1
		for n < len(events) && exact(events[n]) == exact(events[0]) {
			n++
		}
		picks = q.appendTied(picks, x, s, events[:n])
		events = events[n:]
	}
	return picks
}

func (q *Sequence) appendTied(picks []uint32, x extent, s *Scratch, events []uint64) []uint32 {
	from := len(picks)
	for _, e := range events {
		picks = q.appendMembers(picks, x.class(e))
	}
	if tied := picks[from:]; !slices.IsSorted(tied) {
		s.sortOffsets(tied, len(q.classOf))
	}
	return picks
}

// sortOffsets uses a bit set if there are many offsets. That makes a pick among 10,000 entries with
// weights from 1 to 100 twice as fast.
func (s *Scratch) sortOffsets(offsets []uint32, size int) {
	words := (size + 63) / 64
	if len(offsets)<<4 < words {
		slices.Sort(offsets)
		return
	}
	s.bitset = slices.Grow(s.bitset[:0], words)[:words] // all bits are 0, as we clear them after use
	for _, o := range offsets {
		s.bitset[o/64] |= 1 << (o % 64)
	}
	n := 0
	for i, word := range s.bitset {
		for ; word != 0; word &= word - 1 {
			offsets[n] = uint32(64*i + bits.TrailingZeros64(word))
			n++
		}
		s.bitset[i] = 0
	}
}
