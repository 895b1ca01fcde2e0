package topology

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/lb/inorder"
)

// Limit on the sum of locality weights in a priority, and of endpoint weights in a locality (gRFC
// A27, rules for EDS).
const maxWeight = math.MaxUint32

// Checked is a valid answer. It must not be modified.
type Checked struct {
	// Answer is what the channel uses. Every locality has a weight, and no two endpoints share
	// their first address.
	*discovery.Answer
	Given *discovery.Answer // as it came from the source
	// Endpoints is the number of endpoints that can receive calls. If there are none, Why says why,
	// unless the endpoints come from a gRPC resolver. It hides the Why of the source's answer, which
	// may be empty.
	Endpoints int
	Why       string
}

// Check returns an error if an answer breaks the rules. It doesn't recheck anything that's already
// in last, the previous answer, which may be nil. Addresses of endpoints that can't receive calls
// aren't checked either, since we won't connect to them.
func Check(a *discovery.Answer, last *Checked) (*Checked, error) {
	for _, d := range a.Drops {
		if d.PerMillion > million {
			return nil, invalid("category %.100q drops %d of a million calls, want 0 to %d", d.Category, d.PerMillion, million)
		}
	}
	used := *a
	used.Priorities = slices.Clone(a.Priorities)
	c := &Checked{Answer: &used, Given: a, Endpoints: len(a.Resolved)}
	isNew, duplicates := last.compare(a)
	for i := range used.Priorities {
		p := &used.Priorities[i]
		p.Localities = slices.Clone(p.Localities)
		var sum uint64
		names := make(map[string]bool, len(p.Localities))
		for j := range p.Localities {
			l := &p.Localities[j]
			name := NameOf(l)
			if names[name] {
				return nil, invalid("priority %d has the locality %.100q twice", i, name)
			}
			names[name] = true
			n, err := checkLocality(l, i, duplicates, isNew)
			if err != nil {
				return nil, err
			}
			c.Endpoints += n
			if sum += uint64(l.Weight); sum > maxWeight {
				return nil, invalid("the weights of the localities of priority %d sum to more than %d", i, uint64(maxWeight))
			}
		}
	}
	if c.Endpoints == 0 && a.Resolved == nil {
		c.Why = cmp.Or(a.Why, unusableReason(a.Priorities...))
	}
	return c, nil
}

// checkLocality returns the number of usable endpoints. A locality without a weight gets the sum of
// their weights. If none is usable, it gets 1 so that it stays in the tree.
func checkLocality(l *discovery.Locality, priority int, duplicates, isNew map[*discovery.Endpoint]bool) (usable int, err error) {
	var sum uint64
	given := l.Endpoints
	if len(duplicates) > 0 {
		l.Endpoints = nil
	}
	for k := range given {
		e := &given[k]
		if duplicates[e] {
			continue
		}
		if len(duplicates) > 0 {
			l.Endpoints = append(l.Endpoints, *e)
		}
		if !isUsable(e.Health) {
			continue
		}
		if len(e.Addresses) == 0 {
			return 0, invalid("endpoint %d of locality %.100q in priority %d has no address", k, NameOf(l), priority)
		}
		if isNew[e] {
			for _, address := range e.Addresses {
				if _, problem := CanonicalAddress(address); problem != "" {
					return 0, invalid("endpoint %d of locality %.100q in priority %d: %s", k, NameOf(l), priority, problem)
				}
			}
		}
		usable++
		sum += uint64(weightOf(e))
	}
	if sum > maxWeight {
		return 0, invalid("the weights of the endpoints of locality %.100q in priority %d sum to more than %d", NameOf(l), priority, uint64(maxWeight))
	}
	if l.Weight == 0 {
		l.Weight = uint32(max(sum, 1))
	}
	return usable, nil
}

// compare only looks at endpoints whose addresses aren't in c, since we know that those in c are
// valid and distinct. If several endpoints have the same first address, we keep the healthiest one
// (the first one if there's a tie). The rest are duplicates.
func (c *Checked) compare(a *discovery.Answer) (isNew, duplicates map[*discovery.Endpoint]bool) {
	isNew, duplicates = make(map[*discovery.Endpoint]bool), make(map[*discovery.Endpoint]bool)
	best := make(map[string]*discovery.Endpoint)
	for i, p := range a.Priorities {
		for j, l := range p.Localities {
			var before []discovery.Endpoint
			if c != nil && i < len(c.Priorities) && j < len(c.Priorities[i].Localities) {
				before = c.Priorities[i].Localities[j].Endpoints
			}
			var search inorder.Search
			for k := range l.Endpoints {
				e := &l.Endpoints[k]
				if search.Find(len(before), func(n int) bool {
					b := &before[n]
					return slices.Equal(b.Addresses, e.Addresses) && (isUsable(b.Health) || !isUsable(e.Health))
				}) < 0 {
					isNew[e] = true
					best[firstAddress(e)] = nil
				}
			}
		}
	}
	delete(best, "")
	for e := range endpointsOf(a.Priorities...) {
		switch previous, mayBeTwice := best[firstAddress(e)]; {
		case !mayBeTwice:
		case previous == nil:
			best[firstAddress(e)] = e
		case betterHealth(e, previous):
			best[firstAddress(e)] = e
			duplicates[previous] = true
		default:
			duplicates[e] = true
		}
	}
	return isNew, duplicates
}

// Normalized returns the answer's priorities. The endpoints of a gRPC resolver become one priority
// with one locality.
func (c *Checked) Normalized() []discovery.Priority {
	if c.Resolved == nil {
		return c.Priorities
	}
	l := discovery.Locality{Weight: uint32(max(len(c.Resolved), 1))}
	for _, r := range c.Resolved {
		var e discovery.Endpoint
		for _, address := range r.Addresses {
			// The unix and unix-abstract resolvers of gRPC strip "unix:" and give us just a path,
			// or "@" and a name.
			if strings.HasPrefix(address.Addr, "/") || strings.HasPrefix(address.Addr, "@") {
				address.Addr = "unix:" + address.Addr
			}
			e.Addresses = append(e.Addresses, address.Addr)
		}
		l.Endpoints = append(l.Endpoints, e)
	}
	return []discovery.Priority{{Localities: []discovery.Locality{l}}}
}

func NameOf(l *discovery.Locality) string { return LocalityName(l.Region, l.Zone, l.SubZone) }

// refused marks errors for the metrics, which count the answer as refused rather than failed.
type refused struct{ error }

func (refused) Refused() bool { return true }

func invalid(format string, args ...any) error {
	return refused{fmt.Errorf(format, args...)}
}

// CheckNotEmpty returns an error if an answer has no endpoints but isn't marked as Empty. That's
// usually a mistake, e.g. gRPC's DNS resolver sends an empty answer while a name temporarily
// doesn't exist.
func CheckNotEmpty(a *discovery.Answer) error {
	problem := "its answer has no endpoints, and Answer.Empty is not set"
	if a.Resolved != nil {
		problem = "its resolver returned no addresses"
	}
	hasAddress := func(e resolver.Endpoint) bool { return len(e.Addresses) > 0 }
	if a.Empty || a.Resolved == nil && Size(a) > 0 || slices.ContainsFunc(a.Resolved, hasAddress) {
		return nil
	}
	if a.Why != "" {
		problem = a.Why + ": " + problem
	}
	return invalid("%s", problem)
}

// e.g. "no endpoint can take calls: 1 draining, 2 unhealthy"
func unusableReason(priorities ...discovery.Priority) string {
	counts := make(map[discovery.Health]int)
	for e := range endpointsOf(priorities...) {
		counts[e.Health]++
	}
	if len(counts) == 0 {
		return "there are no endpoints"
	}
	var descriptions []string
	for _, h := range slices.Sorted(maps.Keys(counts)) {
		descriptions = append(descriptions, fmt.Sprintf("%d %v", counts[h], h))
	}
	return "no endpoint can take calls: " + strings.Join(descriptions, ", ")
}
