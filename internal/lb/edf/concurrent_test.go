package edf_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/understudy-lb/understudy/internal/lb/edf"
)

func pickConcurrently(s *edf.Scheduler, entries, n int) []int {
	const pickers = 4
	counts := make([]int, entries)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for p := range pickers {
		wg.Go(func() {
			ownCounts := make([]int, entries)
			for range (n + p) / pickers {
				ownCounts[s.Next()]++
			}
			mu.Lock()
			defer mu.Unlock()
			for i, c := range ownCounts {
				counts[i] += c
			}
		})
	}
	wg.Wait()
	return counts
}

// Goroutines that pick at the same time must together get exactly the first n picks of the
// sequence.
func TestConcurrentPicks(t *testing.T) {
	forRandomSets(t, 100*oracleShare, func(t *testing.T, r *rand.Rand, weights []uint32) {
		var lefts []edf.Left
		if r.IntN(2) == 0 {
			lefts = randomLefts(r, len(weights))
		}
		n := randomCount(r, len(weights))
		reference, concurrent := edf.New(entriesOf(weights, lefts)), edf.New(entriesOf(weights, lefts))
		want := make([]int, len(weights))
		for _, p := range picks(reference, n) {
			want[p]++
		}
		for i, got := range pickConcurrently(concurrent, len(weights), n) {
			if got != want[i] {
				t.Errorf("entry %d was picked %d times, want %d", i, got, want[i])
				return
			}
		}
		if got := concurrent.Picked(); len(weights) > 1 && got != uint64(n) {
			t.Errorf("Picked() = %d, want %d", got, n)
		}
		comparePicks(t, picks(concurrent, 100), picks(reference, 100))
	})
}

// While other goroutines pick, Lefts must return the Lefts of a single position of the sequence.
func TestLeftsDuringConcurrentPicks(t *testing.T) {
	weights := make([]uint32, 50)
	for i := range weights {
		weights[i] = primes[i%len(primes)] + uint32(i)
	}
	const n = 100_000
	sequence := picks(edf.New(entriesOf(weights, nil)), n+1000)
	s := edf.New(entriesOf(weights, nil))
	done := make(chan struct{})
	go func() {
		defer close(done)
		pickConcurrently(s, len(weights), n)
	}()
	position := 0
	for picking := true; picking; {
		select {
		case <-done:
			picking = false
		default:
		}
		next := picks(edf.New(entriesOf(weights, s.Lefts())), 500)
		for ; position <= n && !hasPrefix(sequence[position:], next); position++ {
		}
		if position > n {
			t.Fatalf("the Lefts match no position at or after the previous ones")
		}
	}
	if position != n {
		t.Errorf("the last Lefts match the position after %d picks, want %d", position, n)
	}
}

func hasPrefix(sequence, prefix []int) bool {
	for i, p := range prefix {
		if sequence[i] != p {
			return false
		}
	}
	return true
}
