package priority

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/hierarchy"
	"github.com/understudy-lb/understudy/internal/shell"
	"github.com/understudy-lb/understudy/internal/stateattr"
)

// mostSpare is the maximum number of connections of a standby, unless the standby has more
// localities: then it has one connection per locality. A connection costs 70 KiB on both ends
// together, a health stream, and a ping every 10 s. The other endpoints are connected when the
// standby comes into use.
const mostSpare = 20

type spare struct {
	seed  maphash.Seed    // each client selects different endpoints
	parts map[string]bool // children that received only a subset of their endpoints
}

func newSpare() spare { return spare{maphash.MakeSeed(), make(map[string]bool)} }

// updateChild gives a child its configuration and endpoints, or a subset of them if it is a large
// standby.
func (p *policy) updateChild(name string) {
	endpoints := p.groups[name]
	if p.spare.parts[name] {
		endpoints = p.spare.part(endpoints)
	}
	p.children[name].Update(p.config.Children[name].Config, stateattr.SetLabels(shell.WithEndpoints(p.below, endpoints), p.place(name)))
}

// isLarge reports whether a child has more connections than a standby should hold.
func (p *policy) isLarge(name string) bool {
	if len(p.groups[name]) <= mostSpare {
		return false
	}
	endpoints := withoutReserve(p.groups[name])
	return len(endpoints) > mostSpare && p.holds(p.config.Children[name].Config, endpoints, mostSpare+1) > mostSpare
}

// withoutReserve returns the endpoints that are connected first. It leaves out those of zones
// without a share of the calls.
func withoutReserve(endpoints []resolver.Endpoint) []resolver.Endpoint {
	if !slices.ContainsFunc(endpoints, stateattr.IsReserve) {
		return endpoints
	}
	return slices.DeleteFunc(slices.Clone(endpoints), stateattr.IsReserve)
}

// part returns a subset of the endpoints that is stable from update to update. It has at least one
// endpoint of each locality that has a share of the calls.
func (s *spare) part(endpoints []resolver.Endpoint) []resolver.Endpoint {
	endpoints = withoutReserve(endpoints)
	draws := make(map[int]uint64, len(endpoints))
	for i, e := range endpoints {
		for _, a := range hierarchy.Addresses(e) {
			draws[i] += maphash.Comparable(s.seed, [2]string{a.Addr, a.ServerName})
		}
	}
	drawn := slices.SortedFunc(maps.Keys(draws), func(a, b int) int {
		return cmp.Or(cmp.Compare(draws[a], draws[b]), cmp.Compare(a, b))
	})
	chosen, localities := make(map[int]bool), make(map[string]bool)
	for _, i := range drawn {
		if path := hierarchy.Path(endpoints[i]); len(path) > 0 && !localities[path[0]] {
			localities[path[0]], chosen[i] = true, true
		}
	}
	for _, i := range drawn {
		if len(chosen) >= mostSpare {
			break
		}
		chosen[i] = true
	}
	part := make([]resolver.Endpoint, 0, len(chosen))
	for i, e := range endpoints {
		if chosen[i] {
			part = append(part, e)
		}
	}
	return part
}

// beginSpare gives a large standby only a subset of its endpoints. It is called when a child is
// created.
func (p *policy) beginSpare(name string) {
	if p.core.Standby(name) && p.isLarge(name) {
		p.spare.parts[name] = true
		shell.Logger.Infof("priority: %s: %s is a standby of %d endpoints: %d of them are connected before they are needed",
			p.Options.Target.String(), p.title(name), len(withoutReserve(p.groups[name])), len(p.spare.part(p.groups[name])))
	}
}

// needAll makes a child connect all of its endpoints, after the current state is published.
func (p *policy) needAll(name string) {
	if !p.spare.parts[name] {
		return
	}
	delete(p.spare.parts, name)
	p.Event(func() {
		if _, configured := p.config.Children[name]; configured && p.children[name] != nil {
			p.updateChild(name)
			p.letGoLater(name)
		}
	})
}

// letGoLater makes a child return to a subset of its endpoints after ChildRetention. The child
// keeps all of them while it is in use or not READY.
func (p *policy) letGoLater(name string) {
	c := p.children[name]
	if c == nil || !p.isLarge(name) || p.spare.parts[name] {
		return
	}
	after := max(time.Duration(p.config.ChildRetention), time.Second)
	c.StartTimer(spareTimer, after, func() {
		if p.chosen == name || !p.core.Standby(name) || c.State().ConnectivityState != connectivity.Ready {
			p.letGoLater(name)
			return
		}
		p.beginSpare(name)
		p.updateChild(name)
	})
}

// noteSpare makes a standby whose subset has failed connect all of its endpoints.
func (p *policy) noteSpare(name string) {
	if state, ok := p.core.State(name); !ok {
		delete(p.spare.parts, name)
	} else if state == core.TransientFailure {
		p.needAll(name)
	}
}
