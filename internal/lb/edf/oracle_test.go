package edf_test

import (
	"container/heap"
	"math/big"

	"github.com/understudy-lb/understudy/internal/lb/edf"
)

// edfEntry is A34's EdfEntry, with fractions instead of doubles. The denominator remains the same,
// because reducing the fractions takes far longer than the picks.
type edfEntry struct {
	deadline, increment, denominator *big.Int // increment/denominator is 1/weight
	orderOffset                      int
	key                              *big.Int // the deadline, in units if there is one
}

// oracle is A34's priority queue, implemented as in the description of the gRFC.
type oracle struct {
	entries     []*edfEntry
	unitsPerOne *big.Int // deadlines are rounded up to a multiple of 1/this; nil means exact deadlines
	weights     []uint32
	now         big.Int    // a key
	scratch     [2]big.Int // because allocations would take most of the time
}

func newOracle(weights []uint32) *oracle {
	o := &oracle{weights: weights}
	for i, w := range weights {
		o.add(i, &edfEntry{deadline: big.NewInt(1), increment: big.NewInt(1), denominator: big.NewInt(int64(w))})
	}
	return o.init()
}

func newOracleFrom(weights []uint32, lefts []*big.Rat) *oracle {
	gcd := new(big.Int)
	for _, w := range weights {
		gcd.GCD(nil, nil, gcd, big.NewInt(int64(w)))
	}
	o := &oracle{unitsPerOne: gcd.Lsh(gcd, 62), weights: weights}
	for i, w := range weights {
		o.add(i, &edfEntry{
			deadline:    new(big.Int).Set(lefts[i].Num()),
			increment:   lefts[i].Denom(),
			denominator: new(big.Int).Mul(lefts[i].Denom(), big.NewInt(int64(w))),
		})
	}
	return o.init()
}

func (o *oracle) add(offset int, e *edfEntry) {
	e.orderOffset, e.key = offset, e.deadline
	if o.unitsPerOne != nil {
		e.key = new(big.Int)
	}
	o.round(e)
	o.entries = append(o.entries, e)
}

func (o *oracle) init() *oracle {
	heap.Init(o)
	return o
}

func (o *oracle) round(e *edfEntry) {
	if o.unitsPerOne == nil {
		return
	}
	units := &o.scratch[0]
	units.Neg(units.Mul(e.deadline, o.unitsPerOne))
	e.key.DivMod(units, e.denominator, &o.scratch[1]) // rounds down
	e.key.Neg(e.key)
}

func (o *oracle) pick() int {
	e := o.entries[0]
	o.now.Set(e.key)
	e.deadline.Add(e.deadline, e.increment)
	o.round(e)
	heap.Fix(o, 0)
	return e.orderOffset
}

func (o *oracle) picks(n int) []int {
	got := make([]int, n)
	for i := range got {
		got[i] = o.pick()
	}
	return got
}

// lefts needs an oracle with units.
func (o *oracle) lefts() []*big.Rat {
	now := new(big.Rat).SetFrac(&o.now, o.unitsPerOne)
	lefts := make([]*big.Rat, len(o.entries))
	for _, e := range o.entries {
		wait := new(big.Rat).SetFrac(e.deadline, e.denominator)
		wait.Sub(wait, now)
		lefts[e.orderOffset] = wait.Mul(wait, new(big.Rat).SetUint64(uint64(o.weights[e.orderOffset])))
	}
	return lefts
}

func (o *oracle) Len() int { return len(o.entries) }
func (o *oracle) Less(i, j int) bool {
	a, b := o.entries[i], o.entries[j]
	x, y := a.key, b.key
	if o.unitsPerOne == nil {
		x, y = o.scratch[0].Mul(x, b.denominator), o.scratch[1].Mul(y, a.denominator)
	}
	if c := x.Cmp(y); c != 0 {
		return c < 0
	}
	return a.orderOffset < b.orderOffset
}
func (o *oracle) Swap(i, j int) { o.entries[i], o.entries[j] = o.entries[j], o.entries[i] }
func (o *oracle) Push(any)      { panic("not used") }
func (o *oracle) Pop() any      { panic("not used") }

func leftRat(l edf.Left) *big.Rat {
	return new(big.Rat).SetFrac(new(big.Int).SetUint64(uint64(l)), new(big.Int).SetUint64(uint64(edf.Full)))
}
