package main

import (
	"fmt"
	"runtime"
	"slices"
	"time"
)

type cost struct {
	took          time.Duration
	allocs, bytes uint64
}

// costOf runs f counts times and takes the median of each cost. prepare and done, which create and
// release the argument of f, aren't measured.
func costOf[T any](counts int, prepare func() T, f func(T), done func(T)) cost {
	var samples []cost
	for range counts {
		argument := prepare()
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		took := timed(func() { f(argument) })
		runtime.ReadMemStats(&after)
		done(argument)
		samples = append(samples, cost{took, after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc})
	}
	return cost{
		took:   time.Duration(medianOf(samples, func(w cost) float64 { return float64(w.took) })),
		allocs: uint64(medianOf(samples, func(w cost) float64 { return float64(w.allocs) })),
		bytes:  uint64(medianOf(samples, func(w cost) float64 { return float64(w.bytes) })),
	}
}

func (w cost) String() string {
	return fmt.Sprintf("%.1f ms, %d allocs, %.1f MB", float64(w.took.Microseconds())/1000, w.allocs, float64(w.bytes)/1e6)
}

func updates(counts, most int) {
	fmt.Print(`
Bring-up and updates of the generated tree: all endpoints become READY one after the other;
then an update that changes nothing, and one that changes every weight. One call is picked
from each published picker. Translating builds the tree's configuration and endpoints from a
cluster, and parses the configuration.

| endpoints | bring-up | update, identical | update, all weights | translate |
| ---: | --- | --- | --- | --- |
`)
	for n := 1000; n <= min(most, 10_000); n *= 10 {
		weights := distributions[1].weights(n)
		cluster := answerOf(weights)
		slices.Reverse(weights)
		reversed := answerOf(weights)

		up := func() *tree {
			t := newTree()
			t.bringUp(t.stateOf(cluster))
			return t
		}
		probe := newTree()
		first, second := probe.stateOf(cluster), probe.stateOf(reversed)
		probe.close()
		fmt.Printf("| %d | %v | %v | %v | %v |\n", n,
			costOf(counts, newTree, func(t *tree) { t.bringUp(first) }, (*tree).close),
			costOf(counts, up, func(t *tree) { t.update(first) }, (*tree).close),
			costOf(counts, up, func(t *tree) { t.update(second) }, (*tree).close),
			costOf(counts, newTree, func(t *tree) { t.stateOf(cluster) }, (*tree).close))
	}
}
