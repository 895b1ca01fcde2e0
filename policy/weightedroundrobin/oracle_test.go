package weightedroundrobin

import (
	"math/big"

	core "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/lb/edf"
)

// oracle is A34's queue with exact numbers. When the picker is replaced, each endpoint keeps the
// remaining time until its next pick.
type oracle struct {
	order  []*oracleEntry
	all    map[string]*oracleEntry
	now    *big.Rat // the deadline of the last pick
	picked bool
}

type oracleEntry struct {
	name      string
	weight    *big.Rat
	remaining *big.Rat
	known     bool     // a picker with this endpoint has picked, so remaining is known
	deadline  *big.Rat // nil if the endpoint is not in the picker
}

func newOracle() *oracle {
	return &oracle{all: map[string]*oracleEntry{}, now: new(big.Rat)}
}

// update replaces the children by the policy's current children, as a new picker does. For an
// endpoint that no picker has used yet, it copies the remaining time from the policy.
func (o *oracle) update(p *policy) {
	for _, e := range o.order {
		if e.deadline != nil {
			e.remaining = new(big.Rat).Sub(e.deadline, o.now)
			e.remaining.Mul(e.remaining, e.weight)
			e.known = e.known || o.picked
			e.deadline = nil
		}
	}
	o.now, o.picked = new(big.Rat), false
	o.order = nil
	var remaining []edf.Left
	if p.picker != nil {
		remaining = p.picker.Lefts()
	}
	all := map[string]*oracleEntry{}
	for _, c := range p.core.Order() {
		name := c.Attached.endpoint.Addresses[0].Addr
		e := o.all[name]
		if e == nil {
			e = &oracleEntry{name: name, remaining: ratio(1, 1)}
		}
		all[name] = e
		o.order = append(o.order, e)
		e.weight = ratio(uint64(c.Weight()), 1)
		if c.State() == core.Ready {
			if len(remaining) > 0 {
				if !e.known {
					e.remaining = ratio(uint64(remaining[0]), uint64(edf.Full))
				}
				remaining = remaining[1:]
			}
			e.deadline = new(big.Rat).Quo(e.remaining, e.weight)
		}
	}
	o.all = all
}

func (o *oracle) pick() string {
	var next *oracleEntry
	for _, e := range o.order {
		if e.deadline != nil && (next == nil || e.deadline.Cmp(next.deadline) < 0) {
			next = e
		}
	}
	o.now, o.picked = new(big.Rat).Set(next.deadline), true
	next.deadline.Add(next.deadline, new(big.Rat).Inv(next.weight))
	return next.name
}

func ratio(a, b uint64) *big.Rat {
	return new(big.Rat).SetFrac(new(big.Int).SetUint64(a), new(big.Int).SetUint64(b))
}
