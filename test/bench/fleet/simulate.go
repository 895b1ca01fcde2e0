package main

import (
	"math/rand/v2"
	"sort"

	"github.com/understudy-lb/understudy/internal/lb/edf"
)

// fleet is a set of clients that start together, and make the same number of calls to the same
// endpoints. Endpoint i has weight i%maxWeight+1.
type fleet struct {
	clients, endpoints, maxWeight, calls int
}

func (f fleet) weight(endpoint int) uint32 { return uint32(endpoint%f.maxWeight + 1) }

type result struct {
	name string
	// overload is the busiest endpoint's load as a multiple of its fair share, which is
	// proportional to its weight. It's indexed by the number of calls per client minus 1.
	overload []float64
	// worst is the largest load of any endpoint as a multiple of its own fair share. Same index.
	worst []float64
	busy  []float64
}

type client func() int

// simulate simulates the fleet once for each kind of client. The results are deterministic.
func (f fleet) simulate() []result {
	random := rand.New(rand.NewPCG(1, 2))
	return []result{
		f.measure("spec", func() client { return f.scheduler(func(int) edf.Left { return edf.Full }) }),
		f.measure("random", func() client { return f.randomStart(random) }),
		f.measure("random weighted picks", func() client { return f.lottery(random) }),
	}
}

// scheduler returns a client that picks by earliest deadline first, like weighted_round_robin with
// all endpoints READY. left is what remains of an endpoint's first interval.
func (f fleet) scheduler(left func(endpoint int) edf.Left) client {
	entries := make([]edf.Entry, f.endpoints)
	for i := range entries {
		entries[i] = edf.Entry{Weight: f.weight(i), Left: left(i)}
	}
	return edf.New(entries).Next
}

// randomStart returns a client whose sequence of picks starts at a random point. One endpoint,
// drawn by weight, has just been picked. For the others, a random part of their interval is left.
func (f fleet) randomStart(random *rand.Rand) client {
	picked := f.lottery(random)()
	return f.scheduler(func(endpoint int) edf.Left {
		if endpoint == picked {
			return edf.Full
		}
		return edf.Left(random.Uint64N(uint64(edf.Full))) + 1
	})
}

func (f fleet) lottery(random *rand.Rand) client {
	cumulated := make([]int, f.endpoints)
	sum := 0
	for i := range cumulated {
		sum += int(f.weight(i))
		cumulated[i] = sum
	}
	return func() int {
		draw := random.IntN(sum)
		return sort.Search(len(cumulated), func(i int) bool { return cumulated[i] > draw })
	}
}

func (f fleet) measure(name string, newClient func() client) result {
	// load[k][i] is how many clients sent their call k to endpoint i.
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

func (f fleet) summarise(load []int, calls int) (overload, worst, busy float64) {
	sum := 0
	for i := range load {
		sum += int(f.weight(i))
	}
	multiple := func(i int) float64 {
		return float64(load[i]) * float64(sum) / (float64(calls) * float64(f.weight(i)))
	}
	largest, called := 0, 0
	for i, n := range load {
		if n > 0 {
			called++
		}
		if n > load[largest] {
			largest = i
		}
		worst = max(worst, multiple(i))
	}
	return multiple(largest), worst, float64(called) / float64(len(load))
}
