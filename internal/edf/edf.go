// Package edf says who is picked next: the earliest-deadline-first sequence of gRFC
// A34, exact, with its tie-break, for any weights.
//
// Deadlines are integers. After division by their greatest common divisor, the
// weights' sequence repeats after a time of 1, which is counted in 2^62 units, and
// the deadlines of an entry of weight w are ceil(k · 2^62 / w) for k = 1, 2, and so
// on. As weights sum to less than 2^32, the product of two is at most 2^62, hence
// fractions k/w that differ have different deadlines and equal ones equal: the order
// is the one of the fractions, for ever.
package edf

import (
	"container/heap"
	"sync"
)

// Entry is one endpoint of a scheduler.
type Entry struct {
	// Weight is its share: it gets Weight of every sum of the weights picks. 0 counts
	// as 1. The caller keeps the sum of all weights below 2^32.
	Weight uint32
	// Left is how much of its first interval it waits; 0 counts as Full.
	Left Left
}

// Scheduler hands out the indexes of its entries in A34's order. Its order offset is
// the index. It is safe for concurrent use.
//
// The first deadline of an entry is Left / Weight and each next one is 1 / Weight
// later, all rounded up to the unit of time (from the exact sum: rounding never adds
// up). Where every Left is Full, or comes from Lefts of a scheduler that began so,
// with the same entries, that rounding keeps every order and every tie. For other
// values deadlines closer than a unit may count as equal.
type Scheduler struct {
	mu    sync.Mutex
	queue queue
	size  int
	last  item
}

// New returns a scheduler of the entries, which it does not keep.
func New(entries []Entry) *Scheduler {
	s := &Scheduler{size: len(entries), last: item{offset: -1}}
	divisor := commonDivisor(entries)
	for i, e := range entries {
		w, left := uint64(max(e.Weight, 1))/divisor, uint64(e.Left)
		if left == 0 {
			left = uint64(Full)
		}
		it := item{offset: i, weight: w, deadline: (left + w - 1) / w}
		it.slack = it.deadline*w - left
		s.queue = append(s.queue, it)
	}
	heap.Init(&s.queue)
	return s
}

// Next returns the index of the entry that is next; -1 where there are none.
func (s *Scheduler) Next() int {
	if s.size == 0 {
		return -1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = s.queue[0]
	s.queue[0].advance()
	heap.Fix(&s.queue, 0)
	return s.last.offset
}

// Lefts returns the Left of every entry at one moment: now is the deadline of the
// last pick handed out then, and later picks are not counted. A new scheduler of the
// same entries with these Lefts goes on pick for pick.
func (s *Scheduler) Lefts() []Left {
	s.mu.Lock()
	defer s.mu.Unlock()
	lefts := make([]Left, s.size)
	now := uint64(0)
	if s.last.offset >= 0 {
		now = s.last.deadline - 1
	}
	for _, it := range s.queue {
		lefts[it.offset] = Left((it.deadline-now)*it.weight - it.slack)
	}
	return lefts
}

// item is an entry in the queue. Its exact deadline is deadline - slack/weight.
type item struct {
	deadline uint64
	slack    uint64
	weight   uint64
	offset   int
}

func (it *item) advance() {
	it.deadline += uint64(Full) / it.weight
	rest := uint64(Full) % it.weight
	if rest > it.slack {
		it.deadline++
		it.slack += it.weight
	}
	it.slack -= rest
}

type queue []item

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if d := q[i].deadline - q[j].deadline; d != 0 {
		return int64(d) < 0 // deadlines wrap around
	}
	return q[i].offset < q[j].offset
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(any)     {}
func (q *queue) Pop() any     { return nil }

func commonDivisor(entries []Entry) uint64 {
	var d uint64
	for _, e := range entries {
		for w := uint64(max(e.Weight, 1)); w != 0; {
			d, w = w, d%w
		}
	}
	return d
}
