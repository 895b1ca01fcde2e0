package topology

import (
	"cmp"
	"slices"
	"strings"
)

// Checked is a valid answer. It must not be modified.
type Checked struct {
	*Answer
	// Endpoints is the number of endpoints that can receive calls. If it is 0, Unusable is the reason.
	// If the endpoints come from a gRPC resolver, Unusable is always "".
	Endpoints int
	Unusable  string
	Size      int

	skip    map[endpointIndex]bool // endpoints to skip, because another endpoint has the same first address
	weights [][]uint32             // weights of the localities, by priority
}

// Check checks an answer. It returns an *Invalid if the answer breaks the rules.
func Check(a *Answer) (*Checked, error) { return CheckAfter(a, nil) }

// CheckAfter is like Check, but skips the endpoints that were already checked in last, the previous
// answer. last may be nil.
func CheckAfter(a *Answer, last *Checked) (*Checked, error) { return check(a, uncheckedIn(a, last)) }

func check(a *Answer, unchecked uncheckedEndpoints) (*Checked, error) {
	c := &Checked{Answer: a, Endpoints: len(a.Resolved), Size: Size(a)}
	if !unchecked.areDistinct(a) {
		c.skip = findDuplicates(a)
	}
	var err error
	if c.weights, err = checkAnswer(a, c.skip, unchecked); err != nil || a.Resolved != nil {
		return c, err
	}
	forEachEndpoint(a, func(index endpointIndex, e *Endpoint) {
		if isUsable(e.Health) && !c.skip[index] {
			c.Endpoints++
		}
	})
	if c.Endpoints == 0 {
		c.Unusable = cmp.Or(a.Why, unusableAnswerReason(a))
	}
	return c, nil
}

// Normalized returns the answer as the channel uses it. All localities have weights, duplicate
// endpoints are removed, and endpoints of a gRPC resolver form one priority with one locality.
func (c *Checked) Normalized() Answer {
	a := *c.Answer
	if a.Resolved != nil {
		var l Locality
		for _, r := range a.Resolved {
			var e Endpoint
			for _, address := range r.Addresses {
				// gRPC's resolvers unix and unix-abstract give a path, or "@" and a name, without "unix:".
				if strings.HasPrefix(address.Addr, "/") || strings.HasPrefix(address.Addr, "@") {
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
				if !c.skip[endpointIndex{i, j, k}] {
					endpoints = append(endpoints, e)
				}
			}
			l.Endpoints = endpoints
		}
	}
	return a
}
