package main

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/internal/edf"
)

// buildCost is what a scheduler costs until its first pick, for each endpoint.
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
		took := timed(build)
		runtime.ReadMemStats(&after)
		samples = append(samples, buildCost{
			ns:    float64(took.Nanoseconds()) / n,
			bytes: float64(after.TotalAlloc-before.TotalAlloc) / n,
		})
	}
	return buildCost{
		ns:    medianOf(samples, func(b buildCost) float64 { return b.ns }),
		bytes: medianOf(samples, func(b buildCost) float64 { return b.bytes }),
	}
}

// tail is how long the longest of many picks on all cores take, clock included.
type tail struct{ p9999, longest time.Duration }

func measureTail(s *edf.Scheduler) tail {
	const picks = 300_000 // of each core
	runtime.GC()
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			own := make([]time.Duration, picks)
			for i := range own {
				start := time.Now()
				s.Next()
				own[i] = time.Since(start)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, own...)
		})
	}
	wg.Wait()
	slices.Sort(all)
	return tail{p9999: all[len(all)-len(all)/10_000], longest: all[len(all)-1]}
}
