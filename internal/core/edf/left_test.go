package edf

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestRandomLeft(t *testing.T) {
	var sum float64
	const n = 10_000
	for range n {
		sum += float64(RandomLeft(rand.Uint64N)) / float64(Full)
	}
	lowest, highest := RandomLeft(func(uint64) uint64 { return 0 }), RandomLeft(func(n uint64) uint64 { return n - 1 })
	if lowest != 1 || highest != Full {
		t.Fatalf("RandomLeft() is from %d to %d, want (0, %d]", lowest, highest, Full)
	}
	if mean := sum / n; mean < 0.48 || mean > 0.52 {
		t.Errorf("the mean of RandomLeft() is %.3f, want 0.5", mean)
	}
}

// Multiplying all weights by the same factor changes neither the start position nor the picks, even
// if an entry is due at the next unit of time.
func TestCommonFactorOfWeightsDoesNotChangePicks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	for range 2_000 {
		plain := make([]Entry, 1+r.IntN(4))
		scaled := make([]Entry, len(plain))
		factor := 2 + r.Uint32N(1000)
		for i := range plain {
			left := []Left{0, Full, 1, Full + 1, Left(1 + r.Uint64N(20)), Full + Left(1+r.Uint64N(20)), RandomLeft(r.Uint64N)}[r.IntN(7)]
			plain[i] = Entry{Weight: 1 + r.Uint32N(10), Left: left}
			scaled[i] = Entry{Weight: factor * plain[i].Weight, Left: left}
		}
		var s Scratch
		plainSequence, start := New(plain, &s)
		scaledSequence, scaledStart := New(scaled, &s)
		if start != scaledStart {
			t.Fatalf("%v starts at %+v, and with factor %d at %+v", plain, start, factor, scaledStart)
		}
		if picks, scaledPicks := plainSequence.Next(50, &s).Picks, scaledSequence.Next(50, &s).Picks; !slices.Equal(picks, scaledPicks) {
			t.Fatalf("the picks of %v are %v, and with factor %d %v", plain, picks, factor, scaledPicks)
		}
	}
}

// Entries that are picked at the same times cost as little as one. More classes are computed in
// larger stretches.
func TestClassesAndSizes(t *testing.T) {
	var s Scratch
	for n, want := range map[int][3]uint64{1: {1, 256, 4096}, 10_000: {1, 10_000, 5000}, 100_000: {1, 16_384, 32_768}} {
		q, _ := New(make([]Entry, n), &s)
		classes := Sequence{classes: make([]class, n)}
		if got := [3]uint64{uint64(len(q.classes)), FirstSize(n), classes.LaterSize()}; got != want {
			t.Errorf("%d entries: classes, first and later size are %d, want %d", n, got, want)
		}
	}
}
