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

// mostSpare is the maximum number of connections of a standby. If the standby has more localities,
// it has one connection in each. The reason for the limit: a connection costs 70 KiB of memory in
// client and server together, a health stream, and a ping every 10 s. The other endpoints are
// connected when the standby comes into use.
const mostSpare = 20

type spare struct {
	seed  maphash.Seed    // differs between clients, so that they choose different endpoints
	parts map[string]bool // standbys that have received only some of their endpoints
}

func newSpare() spare { return spare{maphash.MakeSeed(), make(map[string]bool)} }

// updateChild passes a child its configuration and endpoints. A large standby gets only some of the
// endpoints.
func (p *policy) updateChild(name string) {
	endpoints := p.groups[name]
	if p.spare.parts[name] {
		endpoints = p.spare.part(endpoints)
	}
	p.children[name].Update(p.config.Children[name].Config, stateattr.SetLabels(shell.Only(endpoints, p.below), p.place(name)))
}

// isLarge reports whether a child would make more connections than a standby may.
func (p *policy) isLarge(name string) bool {
	if len(p.groups[name]) <= mostSpare {
		return false
	}
	endpoints := withoutReserve(p.groups[name])
	return len(endpoints) > mostSpare && p.holds(p.config.Children[name].Config, endpoints, mostSpare+1) > mostSpare
}

// withoutReserve omits the endpoints of zones that have no share of the calls. A standby need not
// connect to them.
func withoutReserve(endpoints []resolver.Endpoint) []resolver.Endpoint {
	if !slices.ContainsFunc(endpoints, stateattr.IsReserve) {
		return endpoints
	}
	return slices.DeleteFunc(slices.Clone(endpoints), stateattr.IsReserve)
}

// part chooses the endpoints of a large standby: at least one in each locality that has a share of
// the calls. Endpoints that stay in the list keep being chosen.
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

// beginSpare is called when a child is created. It records whether the child is a large standby.
func (p *policy) beginSpare(name string) {
	if p.core.Standby(name) && p.isLarge(name) {
		p.spare.parts[name] = true
		shell.Logger.Infof("priority: %s: %s is a standby of %d endpoints: %d of them are connected before they are needed",
			p.Options.Target.String(), p.title(name), len(withoutReserve(p.groups[name])), len(p.spare.part(p.groups[name])))
	}
}

// needAll gives a large standby all of its endpoints, in an event after the current state has been
// published.
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

// letGoLater makes a child a large standby again after ChildRetention, or later if the child is
// then in use or not READY.
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

// noteSpare gives a standby all of its endpoints if the chosen ones have failed.
func (p *policy) noteSpare(name string) {
	if state, ok := p.core.State(name); !ok {
		delete(p.spare.parts, name)
	} else if state == core.TransientFailure {
		p.needAll(name)
	}
}
