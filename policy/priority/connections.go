package priority

import (
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	identity "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

// connections returns how many connections a policy makes: one for pick_first, and one per endpoint
// for others. It stops counting around the limit, so anything above that may be inexact.
func connections(policy lbconfig.Policy, endpoints []resolver.Endpoint, limit int) int {
	if sample := 2 * limit; len(endpoints) > sample {
		if n := connections(policy, endpoints[:sample], limit); n >= limit {
			return n
		}
	}
	switch c := policy.Config.(type) {
	case *lbconfig.Drop:
		return connections(c.ChildPolicy, endpoints, limit)
	case *lbconfig.OutlierDetection:
		return connections(c.ChildPolicy, endpoints, limit)
	case *lbconfig.WeightedTarget:
		n := 0
		groups := hierarchy.Group(endpoints)
		for name, target := range c.Targets {
			n += connections(target.ChildPolicy, groups[name], limit)
		}
		return n
	case *lbconfig.EndpointPolicy:
		return connections(c.ChildPolicy, endpoints, limit)
	case *lbconfig.Priority:
		n := 0
		groups := hierarchy.Group(endpoints)
		for _, name := range c.Priorities {
			n = max(n, connections(c.Children[name].Config, groups[name], limit))
		}
		return n
	}
	switch policy.Name() {
	case "pick_first", "understudy_pick_first", "ring_hash_experimental":
		return min(1, len(endpoints))
	}
	distinct := make(map[identity.Key]bool)
	for _, e := range endpoints {
		if k, ok := hierarchy.KeyOf(e); ok {
			distinct[k] = true
		}
		if len(distinct) >= limit {
			break
		}
	}
	return len(distinct)
}
