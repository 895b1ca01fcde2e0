package edf

import (
	core "github.com/understudy-lb/understudy/internal/core/edf"
	"math/rand/v2"
	"sync"
	"testing"
)

func randomEntries(n int, weight func(r *rand.Rand) uint32) []Entry {
	r := rand.New(rand.NewPCG(34, 62))
	entries := make([]Entry, n)
	for i := range entries {
		entries[i].Weight = weight(r)
	}
	return entries
}

func countOf(picks []int, entries int) []int {
	counts := make([]int, entries)
	for _, p := range picks {
		counts[p]++
	}
	return counts
}

// While the next block cannot be computed, goroutines must take the remaining picks of the current
// block and then wait.
func TestPicksWaitForBlock(t *testing.T) {
	entries := randomEntries(10, func(r *rand.Rand) uint32 { return 100_000 + r.Uint32N(1000) })
	s, reference := New(entries), New(entries)
	s.Next()
	remaining := len(s.current.Load().Picks) - 1

	const pickers = 8
	got := make(chan int, remaining+pickers)
	s.mu.Lock()
	var wg sync.WaitGroup
	for range pickers {
		wg.Go(func() {
			for range remaining/pickers + 1 {
				got <- s.Next()
			}
		})
	}
	for s.current.Load().next.Load() < uint64(remaining/2) {
		<-got
	}
	if s.following != nil {
		t.Fatal("a block was made under the lock")
	}
	s.mu.Unlock()
	wg.Wait()
	picked := pickers * (remaining/pickers + 1)
	for range 1 + picked {
		reference.Next()
	}
	for range 1000 {
		if got, want := s.Next(), reference.Next(); got != want {
			t.Fatalf("after the wait, picked %d, want %d", got, want)
		}
	}
}

func TestLeftsBetweenBlocks(t *testing.T) {
	entries := randomEntries(10, func(r *rand.Rand) uint32 { return 1 + r.Uint32N(100_000) })
	s := New(entries)
	s.Next()
	for range len(s.current.Load().Picks) - 1 {
		s.Next()
	}
	s.mu.Lock()
	s.current.Store(s.following)
	s.following = nil
	s.mu.Unlock()
	for i, l := range s.Lefts() {
		entries[i].Left = l
	}
	continued := New(entries)
	for i := range 1000 {
		if got, want := continued.Next(), s.Next(); got != want {
			t.Fatalf("pick %d is %d, want %d", i, got, want)
		}
	}
}

// The entries have nearly equal weights, so their deadlines are close together, with long gaps
// after each round. Empty blocks must be skipped, and large buckets must be sorted.
func TestNearlyEqualWeights(t *testing.T) {
	const n = 40_000
	entries := randomEntries(n, func(r *rand.Rand) uint32 { return 100_000 + r.Uint32N(100) })
	s := New(entries)
	for round := range 3 {
		got := make([]int, n)
		for i := range got {
			got[i] = s.Next()
		}
		for i, c := range countOf(got, n) {
			if c != 1 {
				t.Fatalf("round %d: entry %d was picked %d times, want once", round, i, c)
			}
		}
		for i := 1; i < n; i++ {
			a, b := entries[got[i-1]].Weight, entries[got[i]].Weight
			if a < b || a == b && got[i-1] > got[i] {
				t.Fatalf("round %d: %d (weight %d) before %d (weight %d)", round, got[i-1], a, got[i], b)
			}
		}
	}
	lefts := s.Lefts()
	for i := range entries {
		entries[i].Left = lefts[i]
	}
	continued := New(entries)
	for i := range 2 * n {
		if got, want := continued.Next(), s.Next(); got != want {
			t.Fatalf("pick %d after the Lefts is %d, want %d", i, got, want)
		}
	}
}

// If a period is one pick longer than several blocks, the block after the end of the period may be
// empty.
func TestEmptyBlockAfterPeriod(t *testing.T) {
	size := int(core.FirstSize(2)) + 4<<10 + 1
	r := rand.New(rand.NewPCG(1, 0))
	for range 100 {
		entries := []Entry{{Weight: uint32(size / 2)}, {Weight: uint32(size - size/2)}}
		for i := range entries {
			entries[i].Left = 1 + Left(r.Uint64N(uint64(Full)))
		}
		s := New(entries)
		period := make([]int, size)
		for i := range 3 * size {
			p := s.Next()
			if i < size {
				period[i] = p
			} else if p != period[i%size] {
				t.Fatalf("pick %d is %d, unlike the one a period before (lefts %v)", i, p, entries)
			}
		}
		if counts := countOf(period, 2); counts[0] != size/2 {
			t.Fatalf("a period has %v picks, want %d and %d", counts, size/2, size-size/2)
		}
	}
}

// Begun must report picks, but not calls of other methods.
func TestBegun(t *testing.T) {
	for _, n := range []int{1, 2} {
		s := New(make([]Entry, n))
		s.Lefts()
		if s.Begun() {
			t.Errorf("%d entries: Begun is true before the first pick", n)
		}
		s.Next()
		if !s.Begun() {
			t.Errorf("%d entries: Begun is false after a pick", n)
		}
	}
}
