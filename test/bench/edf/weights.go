package main

import "math/rand/v2"

type distribution struct {
	name   string
	weight func(r *rand.Rand, i int) uint32
}

var distributions = []distribution{
	{"equal", func(*rand.Rand, int) uint32 { return 7 }},
	{"1..100", func(r *rand.Rand, _ int) uint32 { return 1 + r.Uint32N(100) }},
	{"zipf", func(_ *rand.Rand, i int) uint32 { return max(1, 1_000_000/uint32(1+i)) }},
	{"huge+tiny", func(_ *rand.Rand, i int) uint32 {
		if i == 0 {
			return 4_000_000_000
		}
		return 1
	}},
}

func (d distribution) weights(n int) []uint32 {
	r := rand.New(rand.NewPCG(34, uint64(n)))
	weights := make([]uint32, n)
	for i := range weights {
		weights[i] = d.weight(r, i)
	}
	return weights
}
