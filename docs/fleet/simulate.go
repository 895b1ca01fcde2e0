package main

import (
	"math/rand/v2"
	"sort"

	"github.com/understudy-lb/understudy/internal/edf"
)

// fleet is a number of clients that start at the same time, and each make the same
// number of calls to the same endpoints. Endpoint i has the weight i%maxWeight+1.
type fleet struct {
	clients, endpoints, maxWeight, calls int
}

func (f fleet) weight(endpoint int) uint32 { return uint32(endpoint%f.maxWeight + 1) }

// result is what one way of picking made of the fleet's calls.
type result struct {
	name string
	// overload has, by the number of calls a client has made less 1, the load of
	// the endpoint with the largest one, as a multiple of that endpoint's fair
	// share: its weight's part of all calls.
	overload []float64
	// worst has, likewise, the largest multiple of its fair share that any endpoint
	// has, however small its share.
	worst []float64
	// busy has, likewise, the part of the endpoints that got any call.
	busy []float64
}

// client picks an endpoint for each of its calls.
type client func() int

// simulate runs the fleet with each way of picking. The results are the same each
// time.
func (f fleet) simulate() []result {
	random := rand.New(rand.NewPCG(1, 2))
	return []result{
		f.measure("spec", func() client { return f.scheduler(func(int) edf.Left { return edf.Full }) }),
		f.measure("random", func() client { return f.randomStart(random) }),
		f.measure("random weighted picks", func() client { return f.lottery(random) }),
	}
}

// scheduler returns a client that picks by earliest deadline first, as
// weighted_round_robin does when all endpoints are READY. left is where in its
// interval each endpoint starts.
func (f fleet) scheduler(left func(endpoint int) edf.Left) client {
	entries := make([]edf.Entry, f.endpoints)
	for i := range entries {
		entries[i] = edf.Entry{Weight: f.weight(i), Left: left(i)}
	}
	return edf.New(entries).Next
}

// randomStart returns a client that starts at a random pick: one endpoint, drawn by
// weight, was just picked, and the others are anywhere in their intervals.
func (f fleet) randomStart(random *rand.Rand) client {
	picked := f.lottery(random)()
	return f.scheduler(func(endpoint int) edf.Left {
		if endpoint == picked {
			return edf.Full
		}
		return edf.Left(random.Uint64N(uint64(edf.Full))) + 1
	})
}

// lottery returns a client that draws each endpoint with its weight's probability.
func (f fleet) lottery(random *rand.Rand) client {
	below := make([]int, f.endpoints) // the sum of the weights up to each endpoint
	sum := 0
	for i := range below {
		sum += int(f.weight(i))
		below[i] = sum
	}
	return func() int {
		draw := random.IntN(sum)
		return sort.Search(len(below), func(i int) bool { return below[i] > draw })
	}
}

// measure has all clients make their calls.
func (f fleet) measure(name string, newClient func() client) result {
	// load[k][i] is how many clients made their call k to endpoint i.
	load := make([][]int, f.calls)
	for k := range load {
		load[k] = make([]int, f.endpoints)
	}
	for range f.clients {
		pick := newClient()
		for k := range load {
			load[k][pick()]++
		}
	}
	r := result{name: name}
	total := make([]int, f.endpoints)
	for k := range load {
		for i, n := range load[k] {
			total[i] += n
		}
		overload, worst, busy := f.summarise(total, f.clients*(k+1))
		r.overload = append(r.overload, overload)
		r.worst = append(r.worst, worst)
		r.busy = append(r.busy, busy)
	}
	return r
}

// summarise returns the largest load against its fair share of the calls, the
// largest of all such multiples, and the part of the endpoints that have any load.
func (f fleet) summarise(load []int, calls int) (overload, worst, busy float64) {
	sum := 0
	for i := range load {
		sum += int(f.weight(i))
	}
	multiple := func(i int) float64 {
		return float64(load[i]) * float64(sum) / (float64(calls) * float64(f.weight(i)))
	}
	largest, some := 0, 0
	for i, n := range load {
		if n > 0 {
			some++
		}
		if n > load[largest] {
			largest = i
		}
		worst = max(worst, multiple(i))
	}
	return multiple(largest), worst, float64(some) / float64(len(load))
}
