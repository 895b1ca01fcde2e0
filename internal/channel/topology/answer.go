package topology

import (
	"iter"
	"slices"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

type (
	// Answer is discovery.Answer.
	Answer = discovery.Answer
	// Priority is discovery.Priority.
	Priority = discovery.Priority
	// Locality is discovery.Locality.
	Locality = discovery.Locality
	// Endpoint is discovery.Endpoint.
	Endpoint = discovery.Endpoint
	// Health is discovery.Health.
	Health = discovery.Health
)

// isUsable reports whether endpoints with this health may receive calls (gRFC A27).
func isUsable(h Health) bool { return h == discovery.Unknown || h == discovery.Healthy }

// rank orders health states from best to worst, beginning with 0.
func rank(h Health) int {
	switch h {
	case discovery.Healthy:
		return 0
	case discovery.Unknown:
		return 1
	case discovery.Draining:
		return 2
	}
	return 3
}

// endpointsOf yields the endpoints of priorities in order.
func endpointsOf(priorities ...Priority) iter.Seq[*Endpoint] {
	return func(yield func(*Endpoint) bool) {
		for _, p := range priorities {
			for _, l := range p.Localities {
				for k := range l.Endpoints {
					if !yield(&l.Endpoints[k]) {
						return
					}
				}
			}
		}
	}
}

func weightOf(e *Endpoint) uint32 { return max(e.Weight, 1) }

// Equal reports whether a and other are known to have the same content. It ignores versions. If it
// returns false, the contents may still be the same.
func Equal(a, other *Answer) bool {
	switch {
	case a == other:
		return true
	case a.Identity != other.Identity:
		return false
	case a.Identity != "":
		return equalTexts(a, other)
	}
	return EqualContent(a, other)
}

// EqualContent is like Equal, but compares the contents even if the answers have identities.
func EqualContent(a, other *Answer) bool {
	return equalTexts(a, other) && a.Service == other.Service && slices.Equal(a.Drops, other.Drops) &&
		slices.EqualFunc(a.Priorities, other.Priorities, equalPriorities) &&
		stateattr.Same(func() bool { return slices.EqualFunc(a.Resolved, other.Resolved, equalResolved) })
}

func equalTexts(a, other *Answer) bool {
	return a.Why == other.Why && a.Empty == other.Empty && slices.Equal(a.Notes, other.Notes)
}

func equalResolved(a, b resolver.Endpoint) bool {
	return a.Attributes.Equal(b.Attributes) && slices.EqualFunc(a.Addresses, b.Addresses, resolver.Address.Equal)
}

func equalPriorities(p, other Priority) bool {
	return slices.EqualFunc(p.Localities, other.Localities, func(a, b Locality) bool {
		return a.Region == b.Region && a.Zone == b.Zone && a.SubZone == b.SubZone && a.Weight == b.Weight &&
			slices.EqualFunc(a.Endpoints, b.Endpoints, func(a, b Endpoint) bool { return equalEndpoints(&a, &b) })
	})
}

func equalEndpoints(e, other *Endpoint) bool {
	return e.Weight == other.Weight && e.Health == other.Health && e.Hostname == other.Hostname &&
		slices.Equal(e.Addresses, other.Addresses) && slices.Equal(e.ForZones, other.ForZones) && slices.Equal(e.ForNodes, other.ForNodes)
}

// Size returns the approximate size of an answer in bytes. Equal answers have the same size.
func Size(a *Answer) int {
	const answer, locality, endpoint, address = 300, 100, 280, 50 // the sizes include the spare capacity of slices
	n := answer + len(a.Why)
	for _, note := range a.Notes {
		n += len(note)
	}
	for _, p := range a.Priorities {
		for _, l := range p.Localities {
			n += locality + len(l.Region) + len(l.Zone) + len(l.SubZone)
			for _, e := range l.Endpoints {
				n += endpoint + len(e.Hostname) + address*(len(e.ForZones)+len(e.ForNodes))
				for _, a := range e.Addresses {
					n += address + len(a)
				}
			}
		}
	}
	for _, e := range a.Resolved {
		n += endpoint
		for _, a := range e.Addresses {
			n += 2*address + len(a.Addr)
		}
	}
	return n
}
