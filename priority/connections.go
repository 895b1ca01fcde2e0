package priority

import (
	"google.golang.org/grpc/resolver"

	identity "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/hierarchy"
	"github.com/understudy-lb/understudy/internal/lbconfig"
)

// single returns the children that have at most one connection. When a server closes this
// connection gracefully, the child has none until it has reconnected. This must not cause a fast
// failover.
func (p *policy) single() []string {
	if !p.config.FastFailover {
		return nil
	}
	var names []string
	for _, name := range p.config.Priorities {
		if p.holds(p.config.Children[name].Config, p.groups[name], 2) < 2 {
			names = append(names, name)
		}
	}
	return names
}

// connections returns how many connections a policy makes to these endpoints: pick_first makes one,
// other policies one to each endpoint. Results above most may be inexact.
func connections(policy lbconfig.Policy, endpoints []resolver.Endpoint, most int) int {
	if few := 2 * most; len(endpoints) > few { // more endpoints never mean fewer connections, so the rest is not counted
		if n := connections(policy, endpoints[:few], most); n >= most {
			return n
		}
	}
	switch c := policy.Config.(type) {
	case *lbconfig.Drop:
		return connections(c.ChildPolicy, endpoints, most)
	case *lbconfig.OutlierDetection:
		return connections(c.ChildPolicy, endpoints, most)
	case *lbconfig.WeightedTarget:
		n := 0
		groups := hierarchy.Group(endpoints)
		for name, target := range c.Targets {
			n += connections(target.ChildPolicy, groups[name], most)
		}
		return n
	case *lbconfig.Priority:
		n := 0
		groups := hierarchy.Group(endpoints)
		for _, name := range c.Priorities {
			n = max(n, connections(c.Children[name].Config, groups[name], most))
		}
		return n
	}
	if name := policy.Name(); name == "pick_first" || name == "understudy_pick_first" {
		return min(1, len(endpoints))
	}
	distinct := make(map[identity.Key]bool)
	for _, e := range endpoints {
		var addresses []identity.Address
		for _, a := range hierarchy.Addresses(e) {
			addresses = append(addresses, identity.Address{Addr: a.Addr, ServerName: a.ServerName})
		}
		if len(addresses) > 0 {
			distinct[identity.KeyOf(addresses)] = true
		}
		if len(distinct) >= most {
			break
		}
	}
	return len(distinct)
}
