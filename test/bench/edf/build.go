package main

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/internal/lb/edf"
)

// buildCost is the cost per endpoint of creating a scheduler and making its first pick.
type buildCost struct{ ns, bytes float64 }

func measureBuild(entries []edf.Entry, counts int) buildCost {
	rounds := 1 + 200_000/len(entries)
	build := func() {
		for range rounds {
			edf.New(entries).Next()
		}
	}
	build()
	n := float64(rounds * len(entries))
	var samples []buildCost
	for range counts {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		elapsed := timed(build)
		runtime.ReadMemStats(&after)
		samples = append(samples, buildCost{
			ns:    float64(elapsed.Nanoseconds()) / n,
			bytes: float64(after.TotalAlloc-before.TotalAlloc) / n,
		})
	}
	return buildCost{
		ns:    medianOf(samples, func(b buildCost) float64 { return b.ns }),
		bytes: medianOf(samples, func(b buildCost) float64 { return b.bytes }),
	}
}

// tail is the latency of picks that run on all cores at once. It includes reading the clock.
type tail struct{ p9999, longest time.Duration }

func measureTail(entries []edf.Entry, counts int) tail {
	var samples []tail
	for range counts {
		samples = append(samples, tailOf(edf.New(entries)))
	}
	return tail{
		p9999:   time.Duration(medianOf(samples, func(t tail) float64 { return float64(t.p9999) })),
		longest: time.Duration(medianOf(samples, func(t tail) float64 { return float64(t.longest) })),
	}
}

func tailOf(s *edf.Scheduler) tail {
	const picks = 300_000 // on each core
	took := make([][]time.Duration, runtime.GOMAXPROCS(0))
	for i := range took {
		took[i] = make([]time.Duration, picks)
	}
	runtime.GC()
	var wg sync.WaitGroup
	for _, own := range took {
		wg.Go(func() {
			for i := range own {
				start := time.Now()
				s.Next()
				own[i] = time.Since(start)
			}
		})
	}
	wg.Wait()
	all := slices.Concat(took...)
	slices.Sort(all)
	return tail{p9999: all[len(all)-len(all)/10_000], longest: all[len(all)-1]}
}
