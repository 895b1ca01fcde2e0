package topology

import (
	"fmt"
	"math"
)

// maxWeight limits the sum of the localities' weights in a priority, and the sum of the endpoints'
// weights in a locality (gRFC A27, rules for EDS).
const maxWeight = math.MaxUint32

type endpointIndex struct{ priority, locality, endpoint int }

// bestEndpoint is the healthiest endpoint with a given address that has been found so far.
type bestEndpoint struct {
	endpointIndex
	health Health
}

// findDuplicates finds endpoints with the same first address, and returns the endpoints to skip. Of
// the endpoints with one address, it keeps the healthiest or, if several are equally healthy, the
// first of these.
func findDuplicates(a *Answer) (skip map[endpointIndex]bool) {
	best := make(map[string]bestEndpoint)
	forEachEndpoint(a, func(index endpointIndex, e *Endpoint) {
		if len(e.Addresses) == 0 {
			return
		}
		if previous, isDuplicate := best[e.Addresses[0]]; isDuplicate {
			if skip == nil {
				skip = make(map[endpointIndex]bool)
			}
			if rank(previous.health) <= rank(e.Health) {
				skip[index] = true
				return
			}
			skip[previous.endpointIndex] = true
		}
		best[e.Addresses[0]] = bestEndpoint{index, e.Health}
	})
	return skip
}

func forEachEndpoint(a *Answer, f func(endpointIndex, *Endpoint)) {
	for i, p := range a.Priorities {
		for j, l := range p.Localities {
			for k := range l.Endpoints {
				f(endpointIndex{i, j, k}, &l.Endpoints[k])
			}
		}
	}
}

// checkAnswer checks the rules for answers. It returns the weights of the answer's localities, or
// an *Invalid. The addresses of endpoints that cannot receive calls are not checked, because the
// client does not connect to them.
func checkAnswer(a *Answer, skip map[endpointIndex]bool, unchecked uncheckedEndpoints) (weights [][]uint32, err error) {
	for _, d := range a.Drops {
		if d.PerMillion > million {
			return nil, invalid("category %.100q drops %d of a million calls, want 0 to %d", d.Category, d.PerMillion, million)
		}
	}
	for i, p := range a.Priorities {
		var sum uint64
		names := make(map[string]bool, len(p.Localities))
		localityWeights := make([]uint32, len(p.Localities))
		for j := range p.Localities {
			l := &p.Localities[j]
			if name := NameOf(l); names[name] {
				return nil, invalid("priority %d has the locality %.100q twice", i, name)
			}
			names[NameOf(l)] = true
			if localityWeights[j], err = checkLocality(l, endpointIndex{i, j, 0}, skip, unchecked); err != nil {
				return nil, err
			}
			if sum += uint64(localityWeights[j]); sum > maxWeight {
				return nil, invalid("the weights of the localities of priority %d sum to more than %d", i, uint64(maxWeight))
			}
		}
		weights = append(weights, localityWeights)
	}
	return weights, nil
}

// checkLocality checks a locality and returns its weight. The default is the sum of the weights of
// its usable endpoints. If no endpoint is usable, the default is 1, so that the locality stays in
// the tree.
func checkLocality(l *Locality, index endpointIndex, skip map[endpointIndex]bool, unchecked uncheckedEndpoints) (uint32, error) {
	var sum uint64
	for k := range l.Endpoints {
		e := &l.Endpoints[k]
		index.endpoint = k
		if !isUsable(e.Health) || skip[index] {
			continue
		}
		if len(e.Addresses) == 0 {
			return 0, invalid("endpoint %d of locality %.100q in priority %d has no address", k, NameOf(l), index.priority)
		}
		if unchecked.contains(index) {
			for _, address := range e.Addresses {
				if _, problem := CanonicalAddress(address); problem != "" {
					return 0, invalid("endpoint %d of locality %.100q in priority %d: %s", k, NameOf(l), index.priority, problem)
				}
			}
		}
		sum += uint64(weightOf(e))
	}
	switch {
	case sum > maxWeight:
		return 0, invalid("the weights of the endpoints of locality %.100q in priority %d sum to more than %d", NameOf(l), index.priority, uint64(maxWeight))
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
