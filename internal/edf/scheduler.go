// Package edf distributes the sequence of picks in internal/core/edf to goroutines. A pick costs
// about as much as incrementing an atomic counter.
//
// Picks are computed in blocks. To take a pick, a goroutine increments the block's counter. The
// goroutine that takes a certain pick, about in the middle of a block, computes the next block. A
// goroutine that reaches the end of a block before the next one is ready waits for it or computes
// it.
package edf

import (
	"sync"
	"sync/atomic"

	core "github.com/understudy-lb/understudy/internal/core/edf"
)

// Entry is one endpoint of a scheduler.
type Entry = core.Entry

// Left is the fraction of its interval that an entry waits until its next pick.
type Left = core.Left

// Full is the Left of an entry that waits its whole interval.
const Full = core.Full

// Scheduler returns the indexes of its entries in A34's order. An entry's index is also its order
// offset in A34. All methods are safe for concurrent use.
//
// The first deadline of an entry is Left / Weight, and the following ones are 1 / Weight apart.
// Each is rounded up from its exact value, so that rounding errors do not accumulate. The order is
// exact if every Left is Full, or was returned by such a scheduler with the same weights.
// Otherwise, deadlines within one unit (2^-62 of a period) may count as equal.
type Scheduler struct {
	current atomic.Pointer[block] // nil before the first pick; always nil with a single entry
	_       [56]byte              // padding: the preceding field must not share a cache line with the following ones, which picks write

	size   int
	picked atomic.Bool // set by picks if there is a single entry

	mu    sync.Mutex // guards the following fields
	seq   core.Sequence
	start core.Position
	ready *block // the block after current; nil before it is computed
}

// New returns a scheduler of the entries. It does not keep the slice. The first pick computes the
// first block.
func New(entries []Entry) *Scheduler {
	s := &Scheduler{size: len(entries)}
	scratch := scratches.Get().(*core.Scratch)
	s.seq, s.start = core.New(entries, scratch)
	scratches.Put(scratch)
	return s
}

// Next returns the index of the next entry, or -1 if there are no entries. It locks only to compute
// the next block or to wait for it.
func (s *Scheduler) Next() int {
	b := s.current.Load()
	if b == nil {
		return s.first()
	}
	i := b.next.Add(1) - 1
	if i >= uint64(len(b.Picks)) || i == b.ahead {
		return s.atEdge(b, i)
	}
	return int(b.Picks[i])
}

// Begun reports whether there has been a pick.
func (s *Scheduler) Begun() bool { return s.current.Load() != nil || s.picked.Load() }

// Picked returns the number of picks, without waiting. There must be at least two entries.
func (s *Scheduler) Picked() uint64 {
	b := s.current.Load()
	if b == nil {
		return 0
	}
	return b.before + min(b.next.Load(), uint64(len(b.Picks)))
}

func (s *Scheduler) first() int {
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
		b := s.make(core.FirstSize(s.size))
		b.next.Store(s.start.Skip())
		b.before = -s.start.Skip()
		b.ahead = uint64(len(b.Picks)) / 2 // not earlier, because the scheduler may be replaced before it needs the next block
		s.current.Store(b)
	}
	s.mu.Unlock()
	return s.Next()
}

// atEdge completes pick i of block b. This is either the pick that computes the next block, or a
// pick beyond the end of b.
func (s *Scheduler) atEdge(b *block, i uint64) int {
	s.mu.Lock()
	if s.current.Load() == b { // otherwise, another goroutine has already replaced b
		if s.ready == nil {
			s.ready = s.following(b)
		}
		if i != b.ahead {
			s.current.Store(s.ready)
			s.ready = nil
		}
	}
	s.mu.Unlock()
	if i == b.ahead {
		return int(b.Picks[i])
	}
	return s.Next()
}

func (s *Scheduler) following(b *block) *block {
	if b.Cyclic {
		return &block{Stretch: b.Stretch, ahead: never, before: b.before + uint64(len(b.Picks))}
	}
	next := s.make(s.seq.LaterSize())
	next.ahead = uint64(len(next.Picks)) / 4
	next.before = b.before + uint64(len(b.Picks))
	return next
}

// block is a stretch of the sequence. A replaced block is not reused, because a goroutine may still
// be reading it.
type block struct {
	next atomic.Uint64 // index of the next pick; grows beyond the end
	_    [120]byte     // padding that keeps next and the following fields apart, also if adjacent cache lines are fetched together

	core.Stretch
	ahead uint64

	// before is the number of picks before this block, modulo 2^64. It is negative in the first block
	// of a sequence that does not start at its first pick.
	before uint64
}

const never = ^uint64(0)

var scratches = sync.Pool{New: func() any { return new(core.Scratch) }}

func (s *Scheduler) make(size uint64) *block {
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
	return s.seq.Counts(s.start, s.seq.After(b.Stretch, taken), s.size, b.before+taken)
}

// Lefts returns the Left of every entry after the last pick. A new scheduler with the same entries
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
