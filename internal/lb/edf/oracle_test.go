package edf_test

import (
	"container/heap"
	"math/big"

	"github.com/understudy-lb/understudy/internal/lb/edf"
)

// edfEntry is A34's EdfEntry, with rational numbers instead of doubles.
type edfEntry struct {
	deadline    *big.Rat
	orderOffset int
	weight      *big.Rat
	key         *big.Rat
}

// oracle is A34's priority queue, implemented as in the description of the gRFC.
type oracle struct {
	entries []*edfEntry
	unit    *big.Rat // deadlines are rounded up to a multiple of this; nil means exact deadlines
	now     *big.Rat
}

func newOracle(weights []uint32) *oracle {
	o := &oracle{now: new(big.Rat)}
	for i, w := range weights {
		o.add(i, w, big.NewRat(1, int64(w)))
	}
	return o.init()
}

func newOracleFrom(weights []uint32, lefts []*big.Rat) *oracle {
	gcd := new(big.Int)
	for _, w := range weights {
		gcd.GCD(nil, nil, gcd, big.NewInt(int64(w)))
	}
	unit := new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Lsh(gcd, 62))
	o := &oracle{unit: unit, now: new(big.Rat)}
	for i, w := range weights {
		o.add(i, w, new(big.Rat).Quo(lefts[i], rat(w)))
	}
	return o.init()
}

func (o *oracle) add(offset int, weight uint32, deadline *big.Rat) {
	o.entries = append(o.entries, &edfEntry{
		deadline: deadline, orderOffset: offset, weight: rat(weight), key: o.round(deadline),
	})
}

func (o *oracle) init() *oracle {
	heap.Init(o)
	return o
}

func (o *oracle) round(d *big.Rat) *big.Rat {
	if o.unit == nil {
		return d
	}
	units := new(big.Rat).Quo(d, o.unit)
	roundedUp := new(big.Int).Neg(units.Num())
	roundedUp.Neg(roundedUp.Div(roundedUp, units.Denom())) // Div rounds down
	return new(big.Rat).Mul(new(big.Rat).SetInt(roundedUp), o.unit)
}

func (o *oracle) pick() int {
	e := o.entries[0]
	o.now = e.key
	e.deadline = new(big.Rat).Add(e.deadline, new(big.Rat).Inv(e.weight))
	e.key = o.round(e.deadline)
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

func (o *oracle) lefts() []*big.Rat {
	lefts := make([]*big.Rat, len(o.entries))
	for _, e := range o.entries {
		wait := new(big.Rat).Sub(e.deadline, o.now)
		lefts[e.orderOffset] = wait.Mul(wait, e.weight)
	}
	return lefts
}

func (o *oracle) Len() int { return len(o.entries) }
func (o *oracle) Less(i, j int) bool {
	a, b := o.entries[i], o.entries[j]
	if c := a.key.Cmp(b.key); c != 0 {
		return c < 0
	}
	return a.orderOffset < b.orderOffset
}
func (o *oracle) Swap(i, j int) { o.entries[i], o.entries[j] = o.entries[j], o.entries[i] }
func (o *oracle) Push(any)      { panic("not used") }
func (o *oracle) Pop() any      { panic("not used") }

func rat(w uint32) *big.Rat { return new(big.Rat).SetUint64(uint64(w)) }

func leftRat(l edf.Left) *big.Rat {
	return new(big.Rat).SetFrac(new(big.Int).SetUint64(uint64(l)), new(big.Int).SetUint64(uint64(edf.Full)))
}
