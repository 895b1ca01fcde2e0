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
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

// maxStandbyConnections limits the cost of a standby. Each connection takes 70 KiB in client and
// server together, a health stream, and a ping every 10 s. If a standby has more localities than
// this, it still gets one connection in each. Everything else connects when calls need it.
const maxStandbyConnections = 20

type standbyLimit struct {
	seed    maphash.Seed // random, so that clients choose different endpoints
	limited map[string]bool
}

func (p *policy) updateChild(name string) {
	endpoints := p.groups[name]
	if p.standby.limited[name] {
		endpoints = p.standby.choose(endpoints)
	}
	labels := stateattr.Labels{Priority: p.title(name), Service: stateattr.ChannelOf(p.state).Services[name]}
	p.children[name].Update(p.config.Children[name].Config, stateattr.SetLabels(shell.WithOnlyEndpoints(endpoints, p.childState), labels))
}

func (p *policy) isLarge(name string) bool {
	endpoints := p.groups[name]
	return len(endpoints) > maxStandbyConnections && p.countConnections(p.config.Children[name].Config, endpoints, maxStandbyConnections+1) > maxStandbyConnections
}

// choose takes at least one endpoint from each locality. It only depends on the seed and the
// addresses, so a small change to the list makes a small difference.
func (s *standbyLimit) choose(endpoints []resolver.Endpoint) []resolver.Endpoint {
	numbers := make(map[int]uint64, len(endpoints))
	for i, e := range endpoints {
		for _, a := range hierarchy.Addresses(e) {
			numbers[i] += maphash.Comparable(s.seed, [2]string{a.Addr, a.ServerName})
		}
	}
	order := slices.SortedFunc(maps.Keys(numbers), func(a, b int) int {
		return cmp.Or(cmp.Compare(numbers[a], numbers[b]), cmp.Compare(a, b))
	})
	chosen, localities := make(map[int]bool), make(map[string]bool)
	for _, i := range order {
		if path := hierarchy.Path(endpoints[i]); len(path) > 0 && !localities[path[0]] {
			localities[path[0]], chosen[i] = true, true
		}
	}
	for _, i := range order {
		if len(chosen) >= maxStandbyConnections {
			break
		}
		chosen[i] = true
	}
	selected := make([]resolver.Endpoint, 0, len(chosen))
	for i, e := range endpoints {
		if chosen[i] {
			selected = append(selected, e)
		}
	}
	return selected
}

func (p *policy) limitStandby(name string) {
	if p.core.Standby(name) && p.isLarge(name) {
		p.standby.limited[name] = true
		shell.Logger.Infof("priority: %s: %s is a standby of %d endpoints: %d of them are connected before they are needed",
			p.Options.Target.String(), p.title(name), len(p.groups[name]), len(p.standby.choose(p.groups[name])))
	}
}

// removeLimit updates the child in a separate event, so that the current state is published first.
func (p *policy) removeLimit(name string) {
	if !p.standby.limited[name] {
		return
	}
	delete(p.standby.limited, name)
	p.Event(func() {
		if _, configured := p.config.Children[name]; configured && p.children[name] != nil {
			p.updateChild(name)
			p.scheduleLimit(name)
		}
	})
}

// scheduleLimit limits a large standby again after ChildRetention. If it's in use or not READY by
// then, we wait again.
func (p *policy) scheduleLimit(name string) {
	c := p.children[name]
	if c == nil || !p.isLarge(name) || p.standby.limited[name] {
		return
	}
	delay := max(time.Duration(p.config.ChildRetention), time.Second)
	c.StartTimer(limitTimer, delay, func() {
		if p.chosen == name || p.config.Overflow && p.takesCalls(name) || !p.core.Standby(name) || c.State().ConnectivityState != connectivity.Ready {
			p.scheduleLimit(name)
			return
		}
		p.limitStandby(name)
		p.updateChild(name)
	})
}

// removeLimitAfterFailure makes a standby try all of its endpoints, since maybe it's just the ones
// we chose that fail.
func (p *policy) removeLimitAfterFailure(name string) {
	if state, ok := p.core.State(name); !ok {
		delete(p.standby.limited, name)
	} else if state == core.TransientFailure {
		p.removeLimit(name)
	}
}
