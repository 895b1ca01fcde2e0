package edf

import (
	"math/rand/v2"
	"testing"
)

func TestRandomLeft(t *testing.T) {
	var sum float64
	const n = 10_000
	for range n {
		l := RandomLeft(rand.Uint64N)
		if l < 1 || l > Full {
			t.Fatalf("RandomLeft() = %d, want within (0, %d]", l, Full)
		}
		sum += float64(l) / float64(Full)
	}
	if mean := sum / n; mean < 0.48 || mean > 0.52 { // within 7 standard deviations of 0.5
		t.Errorf("the mean of RandomLeft() is %.3f, want 0.5", mean)
	}
}
