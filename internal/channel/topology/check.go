package topology

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/inorder"
)

// maxWeight limits the sum of the localities' weights in a priority, and the sum of the endpoints'
// weights in a locality (gRFC A27, rules for EDS).
const maxWeight = math.MaxUint32

// Checked is a valid answer. It must not be modified.
type Checked struct {
	// Answer is the answer as the channel uses it: all localities have weights, and no two endpoints
	// have the same first address.
	*Answer
	Given *Answer // the answer as the source gave it
	// Endpoints is the number of endpoints that can receive calls. If it is 0, Unusable is the reason.
	// If the endpoints come from a gRPC resolver, Unusable is always "".
	Endpoints int
	Unusable  string
	Size      int

	why []string // the reason why no endpoint of a priority can receive calls, or ""
}

// Check checks an answer. It returns an *Invalid if the answer breaks the rules. last is the previous
// answer, or nil: what it has is not checked again. The addresses of endpoints that cannot receive
// calls are not checked, because the client does not connect to them.
func Check(a *Answer, last *Checked) (*Checked, error) {
	for _, d := range a.Drops {
		if d.PerMillion > million {
			return nil, invalid("category %.100q drops %d of a million calls, want 0 to %d", d.Category, d.PerMillion, million)
		}
	}
	used := *a
	used.Priorities = slices.Clone(a.Priorities)
	c := &Checked{Answer: &used, Given: a, Endpoints: len(a.Resolved), Size: Size(a)}
	isNew := last.newEndpoints(a)
	duplicates := findDuplicates(a, isNew)
	for i := range used.Priorities {
		p := &used.Priorities[i]
		p.Localities = slices.Clone(p.Localities)
		var sum uint64
		before, names := c.Endpoints, make(map[string]bool, len(p.Localities))
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
		why := ""
		if c.Endpoints == before {
			why = cmp.Or(a.Why, unusableReason(a.Priorities[i]))
		}
		c.why = append(c.why, why)
	}
	if c.Endpoints == 0 && a.Resolved == nil {
		c.Unusable = cmp.Or(a.Why, unusableReason(a.Priorities...))
	}
	return c, nil
}

// checkLocality checks a locality, removes its duplicates, and sets its weight. The default is the sum
// of the weights of its usable endpoints, whose number is returned. If no endpoint is usable, the
// default is 1, so that the locality stays in the tree.
func checkLocality(l *Locality, priority int, duplicates, isNew map[*Endpoint]bool) (usable int, err error) {
	var sum uint64
	given := l.Endpoints
	for k := range given {
		e := &given[k]
		if duplicates[e] || !isUsable(e.Health) {
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
	if len(duplicates) > 0 {
		l.Endpoints = nil
		for k := range given {
			if !duplicates[&given[k]] {
				l.Endpoints = append(l.Endpoints, given[k])
			}
		}
	}
	return usable, nil
}

// findDuplicates returns the endpoints to leave out, because another one has the same first address:
// the healthiest or, if several are equally healthy, the first of these. Only new endpoints can be
// equal to others.
func findDuplicates(a *Answer, isNew map[*Endpoint]bool) map[*Endpoint]bool {
	if len(isNew) == 0 {
		return nil
	}
	best, duplicates := make(map[string]*Endpoint, len(isNew)), make(map[*Endpoint]bool)
	for e := range isNew {
		if len(e.Addresses) > 0 {
			best[e.Addresses[0]] = nil
		}
	}
	for e := range endpointsOf(a.Priorities...) {
		if len(e.Addresses) == 0 {
			continue
		}
		switch previous, mayBeTwice := best[e.Addresses[0]]; {
		case !mayBeTwice:
		case previous == nil:
			best[e.Addresses[0]] = e
		case rank(e.Health) < rank(previous.Health):
			best[e.Addresses[0]] = e
			duplicates[previous] = true
		default:
			duplicates[e] = true
		}
	}
	return duplicates
}

// newEndpoints returns the endpoints of a whose addresses are not known to be in c, where all are
// valid and distinct.
func (c *Checked) newEndpoints(a *Answer) map[*Endpoint]bool {
	isNew := make(map[*Endpoint]bool)
	for i, p := range a.Priorities {
		for j, l := range p.Localities {
			var before []Endpoint
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
				}
			}
		}
	}
	return isNew
}

// Normalized returns the priorities of the answer. The endpoints of a gRPC resolver form one priority
// with one locality.
func (c *Checked) Normalized() []Priority {
	if c.Resolved == nil {
		return c.Priorities
	}
	l := Locality{Weight: uint32(max(len(c.Resolved), 1))}
	for _, r := range c.Resolved {
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
	return []Priority{{Localities: []Locality{l}}}
}

// NameOf returns the name of a locality.
func NameOf(l *Locality) string { return LocalityName(l.Region, l.Zone, l.SubZone) }

// Invalid is the error of an answer that breaks a rule and is therefore rejected as a whole.
type Invalid struct{ text string }

// Error describes the broken rule in one line.
func (e *Invalid) Error() string { return e.text }

// Refused marks the error for discovery.Refused, so that metrics count the answer as refused.
func (*Invalid) Refused() bool { return true }

func invalid(format string, args ...any) error {
	return &Invalid{fmt.Sprintf(format, args...)}
}

// CheckNotEmpty returns an error if an answer has no endpoint and is not marked as Empty. Such an
// answer is usually a mistake. For example, gRPC's DNS resolver sends an empty answer when a name
// temporarily does not exist.
func CheckNotEmpty(a *Answer) error {
	problem := "its answer has no endpoints, and Answer.Empty is not set"
	if a.Resolved != nil {
		problem = "its resolver returned no addresses"
	} else {
		for range endpointsOf(a.Priorities...) {
			return nil
		}
	}
	if a.Empty || slices.ContainsFunc(a.Resolved, func(e resolver.Endpoint) bool { return len(e.Addresses) > 0 }) {
		return nil
	}
	if a.Why != "" {
		problem = a.Why + ": " + problem
	}
	return &Invalid{problem}
}

// unusableReason returns the reason why no endpoint of the priorities can receive calls, such as "no
// endpoint can take calls: 1 draining, 2 unhealthy".
func unusableReason(priorities ...Priority) string {
	counts := make(map[Health]int)
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
