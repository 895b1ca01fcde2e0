package topology

import (
	"iter"
	"slices"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

// Per gRFC A27, only these receive calls.
func isUsable(h discovery.Health) bool { return h == discovery.Unknown || h == discovery.Healthy }

// worst to best; discovery.Unhealthy isn't listed, so it's worse than all of these
var healthOrder = []discovery.Health{discovery.Draining, discovery.Unknown, discovery.Healthy}

func betterHealth(e, other *discovery.Endpoint) bool {
	return slices.Index(healthOrder, e.Health) > slices.Index(healthOrder, other.Health)
}

func firstAddress(e *discovery.Endpoint) string {
	if len(e.Addresses) == 0 {
		return ""
	}
	return e.Addresses[0]
}

func endpointsOf(priorities ...discovery.Priority) iter.Seq[*discovery.Endpoint] {
	return func(yield func(*discovery.Endpoint) bool) {
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

func weightOf(e *discovery.Endpoint) uint32 { return max(e.Weight, 1) }

// Equal reports whether two answers have the same identity or, failing that, equal endpoints and
// drops. It ignores versions.
func Equal(a, other *discovery.Answer) bool {
	return a == other || a.Why == other.Why && a.Empty == other.Empty && slices.Equal(a.Notes, other.Notes) &&
		(a.Identity != "" && a.Identity == other.Identity || equalContents(a, other))
}

func equalContents(a, other *discovery.Answer) bool {
	return a.Service == other.Service && slices.Equal(a.Drops, other.Drops) &&
		slices.EqualFunc(a.Priorities, other.Priorities, equalPriorities) &&
		stateattr.Same(func() bool { return slices.EqualFunc(a.Resolved, other.Resolved, equalResolved) })
}

func equalResolved(a, b resolver.Endpoint) bool {
	return a.Attributes.Equal(b.Attributes) && slices.EqualFunc(a.Addresses, b.Addresses, resolver.Address.Equal)
}

func equalPriorities(p, other discovery.Priority) bool {
	return slices.EqualFunc(p.Localities, other.Localities, func(a, b discovery.Locality) bool {
		return a.Region == b.Region && a.Zone == b.Zone && a.SubZone == b.SubZone && a.Weight == b.Weight &&
			slices.EqualFunc(a.Endpoints, b.Endpoints, func(a, b discovery.Endpoint) bool { return equalEndpoints(&a, &b) })
	})
}

func equalEndpoints(e, other *discovery.Endpoint) bool {
	return e.Weight == other.Weight && e.Health == other.Health && e.Hostname == other.Hostname &&
		slices.Equal(e.Addresses, other.Addresses) && slices.Equal(e.ForZones, other.ForZones) && slices.Equal(e.ForNodes, other.ForNodes)
}

// Size counts all endpoints of an answer, even those that can't receive calls.
func Size(a *discovery.Answer) int {
	n := len(a.Resolved)
	for range endpointsOf(a.Priorities...) {
		n++
	}
	return n
}
