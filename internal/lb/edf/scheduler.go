// Package edf distributes the sequence of picks in internal/core/edf to goroutines. A pick costs
// about as much as incrementing an atomic counter.
//
// We compute picks in blocks. To take a pick, a goroutine increments the block's counter. The
// goroutine that takes a certain pick near the middle of a block computes the next block. One that
// reaches the end of a block before the next is ready waits for it, or computes it.
package edf

import (
	"slices"
	"sync"
	"sync/atomic"

	core "github.com/understudy-lb/understudy/internal/core/edf"
)

// Entry is one endpoint of a scheduler.
type Entry = core.Entry

// Left is the time until the next pick of an entry, as a fraction of its interval.
type Left = core.Left

// Full is the Left of an entry that has just been picked.
const Full = core.Full

// Scheduler returns the indexes of its entries in A34's order. An entry's index is also its order
// offset in A34. All methods are safe for concurrent use.
//
// The first deadline of an entry is Left / Weight, and each following deadline is 1 / Weight later.
// Each deadline is rounded up from its exact value, so that rounding errors do not accumulate. The
// order is exact if each Left is Full, or if all Lefts were returned by such a scheduler with the
// same weights. Otherwise, deadlines within one unit (2^-62 of a period) may count as equal.
type Scheduler struct {
	current atomic.Pointer[block] // nil before the first pick, and if there is a single entry
	_       [56]byte              // separates current, which picks read, from the fields that picks write, by a cache line

	size   int
	picked atomic.Bool // the single entry was picked; not used if there are several entries

	mu        sync.Mutex // guards the following fields
	seq       core.Sequence
	start     core.Position
	following *block // the block after current; nil before it is computed
}

// New returns a scheduler of the entries. It does not keep the slice. The first block is computed
// at the first pick.
func New(entries []Entry) *Scheduler {
	return Fill(len(entries), func(buffer []Entry) { copy(buffer, entries) })
}

// Fill is like New, for n entries that fill writes to a slice. The slice is used again for other
// schedulers.
func Fill(n int, fill func(entries []Entry)) *Scheduler {
	s := &Scheduler{size: n}
	scratch := scratches.Get().(*core.Scratch)
	scratch.Entries = slices.Grow(scratch.Entries[:0], n)[:n]
	fill(scratch.Entries)
	s.seq, s.start = core.New(scratch.Entries, scratch)
	scratches.Put(scratch)
	return s
}

// Next returns the index of the next entry, or -1 if there are no entries. It locks only to compute
// the next block or to wait for it.
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

// Picked returns the number of picks, without waiting. There must be at least two entries.
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
		b := s.computeBlock(core.FirstSize(s.size))
		b.next.Store(s.start.Skip())
		b.picksBefore = -s.start.Skip()
		b.computeAt = uint64(len(b.Picks)) / 2 // late, because the scheduler may be replaced before it needs the next block
		s.current.Store(b)
	}
	s.mu.Unlock()
	return s.Next()
}

// Pick i either computes the next block, or is after the end of b.
func (s *Scheduler) finishPick(b *block, i uint64) int {
	s.mu.Lock()
	if s.current.Load() == b { // otherwise, another goroutine has already replaced b
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
		return &block{Stretch: b.Stretch, computeAt: never, picksBefore: b.picksBefore + uint64(len(b.Picks))}
	}
	next := s.computeBlock(s.seq.LaterSize())
	next.computeAt = uint64(len(next.Picks)) / 4
	next.picksBefore = b.picksBefore + uint64(len(b.Picks))
	return next
}

// A block is a stretch of the sequence. We cannot reuse a replaced one: a goroutine may still be
// reading it.
type block struct {
	next atomic.Uint64 // index of the next pick; it may exceed the number of picks
	_    [120]byte     // separates next from the following fields by two cache lines, which may be fetched together

	core.Stretch
	computeAt uint64 // index of the pick that computes the next block

	// picksBefore is the number of picks before this block, modulo 2^64. In the first block, it
	// represents a negative number if the sequence does not start at its first pick.
	picksBefore uint64
}

const never = ^uint64(0)

var scratches = sync.Pool{New: func() any { return new(core.Scratch) }}

func (s *Scheduler) computeBlock(size uint64) *block {
	scratch := scratches.Get().(*core.Scratch)
	defer scratches.Put(scratch)
	return &block{Stretch: s.seq.Next(size, scratch)}
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

// Lefts returns the Left of each entry after the last pick. A new scheduler with the same entries
// and these Lefts continues the sequence exactly.
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
