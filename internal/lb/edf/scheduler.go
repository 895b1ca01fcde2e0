// Package edf hands out the picks that internal/core/edf computes to any number of goroutines. A
// pick costs about as much as incrementing an atomic counter.
//
// We compute picks in blocks, and a goroutine takes a pick by incrementing the block's counter.
// Whoever takes a certain pick near the middle of a block computes the next block. If a goroutine
// gets to the end of a block before that's done, it waits or computes the next block itself.
package edf

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	core "github.com/understudy-lb/understudy/internal/core/edf"
)

type Entry = core.Entry

// Left is how long an entry still has to wait for its next pick, as a fraction of its interval.
type Left = core.Left

const Full = core.Full

// Scheduler returns the indexes of its entries in A34's order. Ties go to the lower index, which is
// what A34 calls the order offset. All methods are safe for concurrent use.
//
// An entry's first deadline is at Left / Weight, and then there's one every 1 / Weight. We round up
// each exact value separately, so that rounding errors don't accumulate. The order is exact if
// every Left is Full, or if all of them come from another such scheduler with the same weights.
// Otherwise, deadlines within one unit (2^-62 of a period) may count as equal.
type Scheduler struct {
	current atomic.Pointer[block] // nil before the first pick; always nil with a single entry
	_       [56]byte              // keeps current, which every pick reads, off the cache line that picks write to

	size   int
	picked atomic.Bool // used instead of current if there's a single entry

	mu        sync.Mutex
	seq       core.Sequence
	start     core.Position
	following *block
}

// New returns a scheduler for the entries. It doesn't keep the slice. The first block isn't
// computed until the first pick.
func New(entries []Entry) *Scheduler {
	return Fill(len(entries), func(buffer []Entry) { copy(buffer, entries) })
}

// Fill is like New, except that fill writes the n entries to a slice that we reuse for other
// schedulers.
func Fill(n int, fill func(entries []Entry)) *Scheduler {
	s := &Scheduler{size: n}
	scratch := scratches.Get().(*core.Scratch)
	defer scratches.Put(scratch)
	scratch.Entries = slices.Grow(scratch.Entries[:0], n)[:n]
	fill(scratch.Entries)
	s.seq, s.start = core.New(scratch.Entries, scratch)
	return s
}

// Next returns the index of the next entry, or -1 if there are none. It only takes a lock to
// compute the next block, or to wait for it.
func (s *Scheduler) Next() int {
	b := s.current.Load()
	if b == nil {
		return s.firstPick()
	}
	i := b.next.Add(1) - 1
	if i >= uint64(len(b.Picks)) || i == b.computeAt {
		return s.finishPick(b, i)
	}
	return int(b.Picks[i])
}

func (s *Scheduler) Begun() bool { return s.current.Load() != nil || s.picked.Load() }

// Picked returns the number of picks so far, without waiting. There must be at least two entries.
func (s *Scheduler) Picked() uint64 {
	b := s.current.Load()
	if b == nil {
		return 0
	}
	return b.picksBefore + min(b.next.Load(), uint64(len(b.Picks)))
}

func (s *Scheduler) firstPick() int {
	switch s.size {
	case 0:
		return -1
	case 1:
		if !s.picked.Load() {
			s.picked.Store(true)
		}
		return 0
	}
	s.mu.Lock()
	if s.current.Load() == nil {
		// We don't compute the next block any earlier, because the scheduler may be replaced before.
		b := s.computeBlock(core.FirstSize(s.size), 2)
		b.next.Store(s.start.Skip())
		b.picksBefore = -s.start.Skip()
		s.current.Store(b)
	}
	s.mu.Unlock()
	return s.Next()
}

// finishPick is called if pick i has to compute the next block, or is beyond the end of b.
func (s *Scheduler) finishPick(b *block, i uint64) int {
	s.mu.Lock()
	if s.current.Load() == b { // otherwise another goroutine was faster
		if s.following == nil {
			s.following = s.nextBlock(b)
		}
		if i != b.computeAt {
			s.current.Store(s.following)
			s.following = nil
		}
	}
	s.mu.Unlock()
	if i == b.computeAt {
		return int(b.Picks[i])
	}
	return s.Next()
}

func (s *Scheduler) nextBlock(b *block) *block {
	if b.Cyclic {
		return &block{Stretch: b.Stretch, computeAt: math.MaxUint64, picksBefore: b.picksBefore + uint64(len(b.Picks))}
	}
	next := s.computeBlock(s.seq.LaterSize(), 4)
	next.picksBefore = b.picksBefore + uint64(len(b.Picks))
	return next
}

// A block is a stretch of the sequence. We can't reuse it when it's replaced, since other
// goroutines may still be reading it.
type block struct {
	next atomic.Uint64 // index of the next pick; may go beyond the end
	_    [120]byte     // two cache lines, as the CPU may fetch lines in pairs

	core.Stretch
	computeAt uint64 // the pick with this index computes the next block

	// picksBefore is how many picks there were before this block, modulo 2^64. For the first block,
	// that's a negative number if we don't start at the first pick of the sequence.
	picksBefore uint64
}

var scratches = sync.Pool{New: func() any { return new(core.Scratch) }}

// computeBlock returns a block of about size picks. Whoever takes the first pick after 1/part of them
// computes the next block.
func (s *Scheduler) computeBlock(size, part uint64) *block {
	scratch := scratches.Get().(*core.Scratch)
	defer scratches.Put(scratch)
	next := s.seq.Next(size, scratch)
	return &block{Stretch: next, computeAt: uint64(len(next.Picks)) / part}
}

// Counts returns how often each entry was picked. There must be at least two entries.
func (s *Scheduler) Counts() []uint64 {
	b := s.current.Load()
	if b == nil {
		return make([]uint64, s.size)
	}
	taken := min(b.next.Load(), uint64(len(b.Picks)))
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seq.Counts(s.start, s.seq.After(b.Stretch, taken), s.size, b.picksBefore+taken)
}

// Lefts returns what each entry has left after the last pick. You can continue the exact sequence
// by passing these to a new scheduler with the same entries.
func (s *Scheduler) Lefts() []Left {
	b := s.current.Load()
	var taken uint64
	if b != nil {
		taken = min(b.next.Load(), uint64(len(b.Picks)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.start
	switch {
	case b != nil:
		p = s.seq.After(b.Stretch, taken)
	case s.picked.Load():
		return []Left{Full}
	}
	return s.seq.Lefts(p, s.size)
}
