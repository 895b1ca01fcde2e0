// Package edf says who is picked next: the earliest-deadline-first sequence of gRFC
// A34, exact, with its tie-break, for any weights, at about the cost of a counter.
//
// # Time
//
// Deadlines are integers. After division by their greatest common divisor, the
// weights' sequence repeats after a time of 1, which is counted in 2^62 units, and
// the deadlines of an entry of weight w are ceil(k · 2^62 / w) for k = 1, 2, and so
// on. As weights sum to less than 2^32, the product of two is at most 2^62, hence
// fractions k/w that differ have different deadlines and equal ones equal: the order
// is the one of the fractions, for ever. Times are kept modulo 2^64, four periods.
//
// # Blocks
//
// Any stretch of the sequence can be made from nothing, so there is no queue: picks
// are made ahead, a block at a time, and handed out by adding one to the block's
// counter. Entries of the same weight that wait for the same part of it are one
// class, with one progression of deadlines; the deadlines of all classes within a
// stretch of time are sorted, and each becomes the members of its class. The picker
// that takes a certain pick of a block makes the next block; one that finds no block
// ready waits until there is one or makes it itself. A short period is kept and used
// again.
package edf

import (
	"sync"
	"sync/atomic"
)

// Entry is one endpoint of a scheduler.
type Entry struct {
	// Weight is its share: it gets Weight of as many picks as all weights sum to. 0
	// counts as 1. The caller keeps the sum of all weights below 2^32.
	Weight uint32
	// Left is how much of its first interval it waits; 0 counts as Full.
	Left Left
}

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
	picked atomic.Bool // of one entry: whether it was

	mu    sync.Mutex // guards what follows
	seq   sequence
	start position
	ready *block // follows current; nil until it is made
}

// New returns a scheduler of the entries, which it does not keep. The first block is
// made with the first pick.
func New(entries []Entry) *Scheduler {
	s := &Scheduler{size: len(entries)}
	s.seq, s.start = newSequence(entries)
	return s
}

// Next returns the index of the entry that is next; -1 where there are none. It is
// free of locks except when the next block is to be made or waited for.
func (s *Scheduler) Next() int {
	b := s.current.Load()
	if b == nil {
		return s.first()
	}
	i := b.next.Add(1) - 1
	if i >= uint64(len(b.picks)) || i == b.ahead {
		return s.atEdge(b, i)
	}
	return int(b.picks[i])
}

// Begun returns whether there was any pick.
func (s *Scheduler) Begun() bool { return s.current.Load() != nil || s.picked.Load() }

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
		b := s.seq.block(firstBlock(s.size))
		b.next.Store(s.start.skip)
		b.ahead = uint64(len(b.picks)) / 2 // a scheduler may be replaced before that
		s.current.Store(b)
	}
	s.mu.Unlock()
	return s.Next()
}

// atEdge finishes a pick that got the number i of b, where the next block is to be
// made or used.
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
		return int(b.picks[i])
	}
	return s.Next()
}

func (s *Scheduler) following(b *block) *block {
	if b.cyclic {
		return b.again()
	}
	next := s.seq.block(s.seq.laterBlock())
	next.ahead = uint64(len(next.picks)) / 4
	return next
}
