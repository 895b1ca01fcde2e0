package explain

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/rehearse"
)

// We use two clients here. One of them tells us where its calls go while some endpoints are down,
// and the other where they go as priorities fail one after another.
func (r *Result) play(settings options.Settings) {
	world := rehearse.OfUpdate(r.Tree)
	up, owners := world, make([][]*Endpoint, len(world.Priorities))
	up.Priorities = make([][]rehearse.Server, len(world.Priorities))
	rest := r.Tree.Endpoints
	for p, servers := range world.Priorities {
		for _, s := range servers {
			e := &r.Endpoints[r.owners[ownerKey(r.Tree.Priorities[p].Cluster, rest[0].Addresses[0].Addr)]]
			rest = rest[1:]
			n := len(owners[p])
			isSecond := n > 0 && up.Priorities[p][n-1].Locality == s.Locality // pick_first connects to one per locality
			if !e.Down && (!isSecond || !settings.EndpointPolicy.IsPickFirst()) {
				up.Priorities[p], owners[p] = append(up.Priorities[p], s), append(owners[p], e)
			}
		}
	}
	if use := rehearse.Rest(up)[0]; use.Priority < 0 {
		r.Error = r.failure()
	} else {
		r.Dropped = world.Drop[use.Priority]
		for i, share := range use.Shares {
			e := owners[use.Priority][i]
			if e.Share += share * (1 - r.Dropped); e.Share > 0 {
				r.Priority = &e.Priority
			}
		}
		if r.Dropped > 0 {
			r.Error = "call dropped by configuration"
		}
	}
	if n := len(world.Priorities); world.Source(n-1) != n-1 {
		return // a priority was split by distance, so the numbers wouldn't match those in the file
	}
	uses := rehearse.Rest(world)
	for p, of := range r.Tree.Priorities {
		tier := PriorityResult{Priority: uint32(p), Cluster: of.Cluster, Endpoints: len(world.Priorities[p]), Standby: uses[0].Standby[p]}
		if next := uint32(uses[p+1].Priority); uses[p+1].Priority >= 0 {
			tier.Next = &next
		}
		r.Tiers = append(r.Tiers, tier)
	}
}

func (r *Result) failure() string {
	var reasons []string
	for i, p := range r.Tree.Priorities {
		reasons = append(reasons, fmt.Sprintf("p%d %s: %s", i, p.Name, cmp.Or(p.Why, "its endpoints are down")))
	}
	return "no priority can take calls: " + cmp.Or(strings.Join(reasons, "; "), r.Tree.Why, "there are none")
}
