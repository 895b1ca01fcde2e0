package topology

import (
	"fmt"
	"math"
)

// maxWeight limits the sum of the localities' weights in a priority, and the sum of the endpoints'
// weights in a locality (gRFC A27, rules for EDS).
const maxWeight = math.MaxUint32

type place struct{ priority, locality, endpoint int }

// held is the best endpoint found so far with a given address.
type held struct {
	place
	health Health
}

// twice finds endpoints that share their first address, and returns those to skip. It keeps the
// healthiest endpoint, or the first of the healthiest ones.
func twice(a *Answer) (skip map[place]bool) {
	at := make(map[string]held)
	each(a, func(here place, e *Endpoint) {
		if len(e.Addresses) == 0 {
			return
		}
		if first, there := at[e.Addresses[0]]; there {
			if skip == nil {
				skip = make(map[place]bool)
			}
			if rank(first.health) <= rank(e.Health) {
				skip[here] = true
				return
			}
			skip[first.place] = true
		}
		at[e.Addresses[0]] = held{here, e.Health}
	})
	return skip
}

func each(a *Answer, f func(place, *Endpoint)) {
	for i, p := range a.Priorities {
		for j, l := range p.Localities {
			for k := range l.Endpoints {
				f(place{i, j, k}, &l.Endpoints[k])
			}
		}
	}
}

// checkAnswer checks the rules for answers. It returns the weights of the answer's localities, or
// an *Invalid. The addresses of endpoints that cannot receive calls are not checked, because the
// client does not connect to them.
func checkAnswer(a *Answer, skip map[place]bool, n uncheckedEndpoints) (weights [][]uint32, err error) {
	for _, d := range a.Drops {
		if d.PerMillion > million {
			return nil, invalid("category %.100q drops %d of a million calls, want 0 to %d", d.Category, d.PerMillion, million)
		}
	}
	for i, p := range a.Priorities {
		var sum uint64
		names := make(map[string]bool, len(p.Localities))
		of := make([]uint32, len(p.Localities))
		for j := range p.Localities {
			l := &p.Localities[j]
			if name := NameOf(l); names[name] {
				return nil, invalid("priority %d has the locality %.100q twice", i, name)
			}
			names[NameOf(l)] = true
			if of[j], err = checkLocality(l, place{i, j, 0}, skip, n); err != nil {
				return nil, err
			}
			if sum += uint64(of[j]); sum > maxWeight {
				return nil, invalid("the weights of the localities of priority %d sum to more than %d", i, uint64(maxWeight))
			}
		}
		weights = append(weights, of)
	}
	return weights, nil
}

// checkLocality checks a locality and returns its weight. The default is the sum of the weights of
// its usable endpoints or, if there are none, 1, so that the locality stays in the tree.
func checkLocality(l *Locality, at place, skip map[place]bool, n uncheckedEndpoints) (uint32, error) {
	var sum uint64
	for k := range l.Endpoints {
		e := &l.Endpoints[k]
		at.endpoint = k
		if !usable(e.Health) || skip[at] {
			continue
		}
		if len(e.Addresses) == 0 {
			return 0, invalid("endpoint %d of locality %.100q in priority %d has no address", k, NameOf(l), at.priority)
		}
		if n.has(at) {
			for _, address := range e.Addresses {
				if _, problem := CanonicalAddress(address); problem != "" {
					return 0, invalid("endpoint %d of locality %.100q in priority %d: %s", k, NameOf(l), at.priority, problem)
				}
			}
		}
		sum += uint64(weightOf(e))
	}
	switch {
	case sum > maxWeight:
		return 0, invalid("the weights of the endpoints of locality %.100q in priority %d sum to more than %d", NameOf(l), at.priority, uint64(maxWeight))
	case l.Weight > 0:
		return l.Weight, nil
	}
	return uint32(max(sum, 1)), nil
}

// NameOf returns the name of a locality.
func NameOf(l *Locality) string { return LocalityName(l.Region, l.Zone, l.SubZone) }

func invalid(format string, args ...any) error {
	return &Invalid{fmt.Sprintf(format, args...)}
}
