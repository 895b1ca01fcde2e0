package edf_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/understudy-lb/understudy/internal/edf"
)

func pickTogether(s *edf.Scheduler, entries, n int) []int {
	const pickers = 4
	counts := make([]int, entries)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for p := range pickers {
		wg.Go(func() {
			own := make([]int, entries)
			for range (n + p) / pickers {
				own[s.Next()]++
			}
			mu.Lock()
			defer mu.Unlock()
			for i, c := range own {
				counts[i] += c
			}
		})
	}
	wg.Wait()
	return counts
}

// Pickers that run at the same time must together get exactly the first n picks of the sequence.
func TestConcurrentPickersShareTheSequence(t *testing.T) {
	forRandomSets(t, 100*oracleShare, func(t *testing.T, r *rand.Rand, weights []uint32) {
		var lefts []edf.Left
		if r.IntN(2) == 0 {
			lefts = randomLefts(r, len(weights))
		}
		n := stretch(r, len(weights))
		alone, together := edf.New(entriesOf(weights, lefts)), edf.New(entriesOf(weights, lefts))
		want := make([]int, len(weights))
		for _, p := range picks(alone, n) {
			want[p]++
		}
		for i, got := range pickTogether(together, len(weights), n) {
			if got != want[i] {
				t.Errorf("entry %d was picked %d times, want %d", i, got, want[i])
				return
			}
		}
		if got := together.Picked(); len(weights) > 1 && got != uint64(n) {
			t.Errorf("Picked() = %d, want %d", got, n)
		}
		if len(weights) > 1 {
			for i, got := range together.Counts() {
				if got != uint64(want[i]) {
					t.Errorf("Counts() of entry %d = %d, want %d", i, got, want[i])
					return
				}
			}
		}
		same(t, picks(together, 100), picks(alone, 100))
	})
}

// While other goroutines pick, Lefts must return the Lefts at one position of the sequence, not a
// mixture.
func TestLeftsWhileOthersPick(t *testing.T) {
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
		pickTogether(s, len(weights), n)
	}()
	from := 0
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		next := picks(edf.New(entriesOf(weights, s.Lefts())), 500)
		for ; from <= n && !begins(sequence[from:], next); from++ {
		}
		if from > n {
			t.Fatalf("the Lefts match no position at or after the previous ones")
		}
	}
	if from != n {
		t.Errorf("the last Lefts match the position after %d picks, want %d", from, n)
	}
}

func begins(sequence, with []int) bool {
	for i, p := range with {
		if sequence[i] != p {
			return false
		}
	}
	return true
}
