package main

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

type cell struct {
	name             string
	serial, parallel float64
	serialRatio      float64
	parallelRatio    float64
	allocs           float64
}

type rowResult struct {
	weights   string
	endpoints int
	cells     []cell
	build     buildCost
	tail      tail
}

func measureRow(d distribution, n, counts int, span time.Duration) rowResult {
	weights := d.weights(n)
	all := contestants(weights)
	samples := make([][]cell, len(all))
	for range counts {
		var floor cell
		for i, c := range all {
			runtime.GC()
			sample := measure(c, span)
			if i == 0 {
				floor = sample
			}
			sample.serialRatio = sample.serial / floor.serial
			sample.parallelRatio = sample.parallel / floor.parallel
			samples[i] = append(samples[i], sample)
		}
	}
	row := rowResult{weights: d.name, endpoints: n}
	for i, c := range all {
		median := func(f func(cell) float64) float64 { return medianOf(samples[i], f) }
		row.cells = append(row.cells, cell{
			name:          c.name,
			serial:        median(func(c cell) float64 { return c.serial }),
			parallel:      median(func(c cell) float64 { return c.parallel }),
			serialRatio:   median(func(c cell) float64 { return c.serialRatio }),
			parallelRatio: median(func(c cell) float64 { return c.parallelRatio }),
			allocs:        fewestAllocs(samples[i]),
		})
		if c.close != nil {
			c.close()
		}
	}
	row.build = measureBuild(entries(weights, true), counts)
	row.tail = measureTail(entries(weights, true), counts)
	return row
}

func measure(c contestant, span time.Duration) cell {
	n := 1
	took := timed(func() { c.loop(n) })
	for took < span/4 {
		n *= 2
		took = timed(func() { c.loop(n) })
	}
	n = max(1, int(float64(n)*float64(span)/float64(took)))
	before := mallocs()
	serial := timed(func() { c.loop(n) })
	allocs := float64(mallocs()-before) / float64(n)
	parallel := timed(func() { onAllCores(c.loop, n) })
	return cell{
		serial:   float64(serial.Nanoseconds()) / float64(n),
		parallel: float64(parallel.Nanoseconds()) / float64(n),
		allocs:   allocs,
	}
}

// onAllCores runs the loop on all cores. They take small portions of the n iterations until there
// are none left, so they all finish at about the same time.
func onAllCores(loop func(int), n int) {
	portion := max(1, n/256)
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				end := int(taken.Add(int64(portion)))
				if begin := end - portion; begin >= n {
					return
				}
				loop(portion - max(0, end-n))
			}
		})
	}
	wg.Wait()
}

// fewestAllocs doesn't return the median, because grpc-go's weighted_round_robin allocates every
// second in this process.
func fewestAllocs(samples []cell) float64 {
	fewest := samples[0].allocs
	for _, c := range samples {
		fewest = min(fewest, c.allocs)
	}
	return fewest
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

func medianOf[T any](samples []T, f func(T) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = f(s)
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 0 {
		return (values[middle-1] + values[middle]) / 2
	}
	return values[middle]
}
