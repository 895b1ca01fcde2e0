package tally

import (
	"sync"
	"testing"
)

type count int64

func (c count) Plus(other count) count { return c + other }

func TestSums(t *testing.T) {
	var board Board[string, count]
	var adders sync.WaitGroup
	for range 4 {
		adders.Go(func() {
			for range 1000 {
				board.Add("a", 2)
				board.Add("a", -1)
				board.Add("b", 1)
				board.Add("b", -1)
			}
		})
	}
	adders.Wait()
	if a, b := board.Sum("a"), board.Sum("b"); a != 4000 || b != 0 {
		t.Errorf("the sums are %d and %d, want 4000 and 0", a, b)
	}
	if len(board.sums) != 1 {
		t.Errorf("%d sums are stored, want 1", len(board.sums))
	}
}
