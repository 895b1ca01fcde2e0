// Package edf hands out the sequence of internal/core/edf to many goroutines at once,
// at about the cost of a counter.
//
// Picks are made ahead, a block at a time, and handed out by adding one to the block's
// counter. The goroutine that takes a certain pick of a block makes the next block. One
// that finds no block ready waits for it or makes it itself.
package edf

import (
	"sync"
	"sync/atomic"

	core "github.com/understudy-lb/understudy/internal/core/edf"
)

// Entry is one endpoint of a scheduler.
type Entry = core.Entry

// Left is the part of its interval that an entry still waits before it is picked next.
type Left = core.Left

// Full is the Left of an entry that waits its whole interval.
const Full = core.Full

// Scheduler hands out the indexes of its entries in A34's order; the order offset of
// an entry is its index. All methods are safe for concurrent use.
//
// The first deadline of an entry is Left / Weight and each next one is 1 / Weight
// later, all rounded up to the unit of time from their exact values, so that rounding
// never adds up. Where every Left is Full, or comes from a scheduler of the same
// weights that began so, that keeps every order and every tie. With other values,
// deadlines within one unit (2^-62 of a period) may count as equal.
type Scheduler struct {
	current atomic.Pointer[block] // nil until the first pick, and for one entry
	_       [56]byte              // what follows is written while others pick

	size   int
	picked atomic.Bool // with one entry: whether it was picked

	mu    sync.Mutex // guards what follows
	seq   core.Sequence
	start core.Position
	ready *block // follows current; nil until it is made
}

// New returns a scheduler of the entries, which it does not keep. The first block is
// made with the first pick.
func New(entries []Entry) *Scheduler {
	s := &Scheduler{size: len(entries)}
	scratch := scratches.Get().(*core.Scratch)
	s.seq, s.start = core.New(entries, scratch)
	scratches.Put(scratch)
	return s
}

// Next returns the index of the next entry, -1 without entries. It takes a lock only to
// make the next block or wait for it.
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

// Begun returns whether anything has been picked.
func (s *Scheduler) Begun() bool { return s.current.Load() != nil || s.picked.Load() }

// Picked returns how many picks were handed out, where there are two entries or more. It
// costs a pick nothing, and never waits.
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
		b.ahead = uint64(len(b.Picks)) / 2 // a scheduler may be replaced before that
		s.current.Store(b)
	}
	s.mu.Unlock()
	return s.Next()
}

// atEdge finishes the pick with number i of b, where the next block is to be made or
// used.
func (s *Scheduler) atEdge(b *block, i uint64) int {
	s.mu.Lock()
	if s.current.Load() == b { // else someone was faster
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

// block is a stretch of the sequence. Blocks are never used again once they are
// replaced: a picker may be about to read one, so the garbage collector has them.
type block struct {
	next atomic.Uint64 // number of the next pick to hand out; runs past the end
	_    [120]byte     // next has a cache line, and its neighbour, of its own

	core.Stretch
	ahead uint64 // the number of the pick that makes the next block

	// before is how many picks were handed out before this block; that of the first is
	// less than 0, modulo 2^64, where it does not begin at its first pick.
	before uint64
}

const never = ^uint64(0)

var scratches = sync.Pool{New: func() any { return new(core.Scratch) }}

func (s *Scheduler) make(size uint64) *block {
	scratch := scratches.Get().(*core.Scratch)
	defer scratches.Put(scratch)
	return &block{Stretch: s.seq.Next(size, scratch)}
}

// Counts returns how often each of two entries or more was picked. It waits while a block
// is being made.
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

// Lefts returns the Left of every entry at one moment: now is the deadline of the last
// pick handed out by then, and later picks do not count. A new scheduler of the same
// entries with these Lefts goes on pick for pick. Lefts waits while a block is being
// made.
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
