package topology

import (
	"cmp"
	"slices"
	"strings"
)

// Checked is an answer that keeps the rules of its fields. Nobody changes it.
type Checked struct {
	*Answer
	// Endpoints is how many of its endpoints can take calls. Where there is none, Unusable says
	// why; it is "" for those of a gRPC resolver, of which that is known elsewhere.
	Endpoints int
	Unusable  string
	// Size is about how many bytes it takes.
	Size int

	skip    map[place]bool // endpoints that do not count
	weights [][]uint32     // of the localities
}

// Check returns an *Invalid where an answer breaks the rules of its fields.
func Check(a *Answer) (*Checked, error) {
	c := &Checked{Answer: a, skip: twice(a), Endpoints: len(a.Resolved), Size: Size(a)}
	var err error
	if c.weights, err = checkAnswer(a, c.skip); err != nil || a.Resolved != nil {
		return c, err
	}
	each(a, func(at place, e *Endpoint) {
		if usable(e.Health) && !c.skip[at] {
			c.Endpoints++
		}
	})
	if c.Endpoints == 0 {
		c.Unusable = cmp.Or(a.Why, whyAll(a))
	}
	return c, nil
}

// Plain returns the answer as it counts: each locality has its weight, no endpoint comes twice, and
// those of a gRPC resolver are one priority with one locality.
func (c *Checked) Plain() Answer {
	a := *c.Answer
	if a.Resolved != nil {
		var l Locality
		for _, r := range a.Resolved {
			var e Endpoint
			for _, address := range r.Addresses {
				if strings.HasPrefix(address.Addr, "/") { // of gRPC's resolver of unix targets
					address.Addr = "unix:" + address.Addr
				}
				e.Addresses = append(e.Addresses, address.Addr)
			}
			l.Endpoints = append(l.Endpoints, e)
		}
		l.Weight = uint32(max(len(l.Endpoints), 1))
		a.Resolved, a.Priorities = nil, []Priority{{Localities: []Locality{l}}}
		return a
	}
	a.Priorities = slices.Clone(a.Priorities)
	for i := range a.Priorities {
		p := &a.Priorities[i]
		p.Localities = slices.Clone(p.Localities)
		for j := range p.Localities {
			l := &p.Localities[j]
			l.Weight = c.weights[i][j]
			var endpoints []Endpoint
			for k, e := range l.Endpoints {
				if !c.skip[place{i, j, k}] {
					endpoints = append(endpoints, e)
				}
			}
			l.Endpoints = endpoints
		}
	}
	return a
}
