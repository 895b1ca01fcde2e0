package edf_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	core "github.com/understudy-lb/understudy/internal/core/edf"
	"github.com/understudy-lb/understudy/internal/lb/edf"
)

func benchmarkSets(b *testing.B, run func(b *testing.B, entries []edf.Entry)) {
	for _, name := range []string{"equal", "1..100", "zipf", "one huge"} {
		for _, d := range distributions {
			if d.name != name {
				continue
			}
			for n := 10; n <= 100_000; n *= 10 {
				weights := d.weights(rand.New(rand.NewPCG(34, 0)), n)
				entries := entriesOf(weights, nil)
				b.Run(fmt.Sprintf("%s/%d/spec", name, n), func(b *testing.B) { run(b, entries) })
				entries = entriesOf(weights, nil)
				for i := range entries {
					entries[i].Left = core.RandomLeft(rand.Uint64N)
				}
				b.Run(fmt.Sprintf("%s/%d/random", name, n), func(b *testing.B) { run(b, entries) })
			}
		}
	}
}

func BenchmarkNext(b *testing.B) {
	benchmarkSets(b, func(b *testing.B, entries []edf.Entry) {
		b.ReportAllocs()
		for s := edf.New(entries); b.Loop(); {
			s.Next()
		}
	})
}

func BenchmarkNextParallel(b *testing.B) {
	benchmarkSets(b, func(b *testing.B, entries []edf.Entry) {
		b.ReportAllocs()
		s := edf.New(entries)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				s.Next()
			}
		})
	})
}

func BenchmarkFloor(b *testing.B) {
	var counter atomic.Uint64
	for b.Loop() {
		counter.Add(1)
	}
}

func BenchmarkFloorParallel(b *testing.B) {
	var counter atomic.Uint64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			counter.Add(1)
		}
	})
}

func BenchmarkNew(b *testing.B) {
	benchmarkSets(b, func(b *testing.B, entries []edf.Entry) {
		b.ReportAllocs()
		for b.Loop() {
			edf.New(entries).Next()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(entries)), "ns/entry")
	})
}
