package adsclient

import (
	"errors"

	"github.com/understudy-lb/understudy/internal/core/ads"
)

// State is the state of a resource on one server. It is empty before the server has sent it.
type State struct {
	Good    *Resource
	Version string // version of the response that contained Good, or ""
	Err     error
}

// Snapshot holds the states of a target's resources on one server, by name.
type Snapshot struct {
	Server              int // index in Target.Servers
	Clusters, Endpoints map[string]State
	For                 any // Needs.For, copied from the result of Target.Needs
}

// Needs lists the resources that a target needs. Whole means that the target also has endpoints
// without these resources.
type Needs struct {
	Clusters, Endpoints []string
	Whole               bool
	For                 any // arbitrary data, copied to Snapshot.For
}

// view holds the subscriptions of a target on one server, and the states of their resources.
type view struct {
	of     *Following
	server int
	news   bool

	clusters, endpoints map[string]*viewed
	needed              any // Needs.For of the last call of Target.Needs
	err                 error
	lost                *Outage
}

type viewed struct {
	view   *view
	state  State
	absent bool
	bad    bool // the last update was rejected, and there is no good resource
	gone   bool
	cancel func()
}

func newView(g *Following, server int) *view {
	return &view{of: g, server: server, clusters: make(map[string]*viewed), endpoints: make(map[string]*viewed)}
}

// ask adapts the subscriptions to the target's current needs, and returns these.
func (v *view) ask() Needs {
	needs := v.of.target.Needs(v.snapshot().Clusters)
	v.needed = needs.For
	v.askFor(Clusters, v.clusters, needs.Clusters)
	v.askFor(Endpoints, v.endpoints, needs.Endpoints)
	return needs
}

func (v *view) askFor(of *Type, have map[string]*viewed, names []string) {
	needed := make(map[string]bool)
	for _, name := range names {
		needed[name] = true
		if have[name] == nil {
			r := &viewed{view: v}
			have[name] = r
			r.cancel = Watch(v.of.target.Servers[v.server], of, name, r, v.of.recorder)
		}
	}
	for name, r := range have {
		if !needed[name] {
			r.gone = true
			delete(have, name)
			r.cancel()
		}
	}
}

func (v *view) close() {
	v.askFor(Clusters, v.clusters, nil)
	v.askFor(Endpoints, v.endpoints, nil)
}

// has returns ads.Waiting if a needed resource has not arrived yet, ads.All if there are good
// endpoints, and ads.Nothing otherwise.
func (v *view) has(needs Needs) ads.Has {
	waits, bad, good := false, false, needs.Whole
	for _, r := range v.clusters {
		waits, bad = waits || r.state.Good == nil && !r.absent && !r.bad, bad || r.bad
	}
	for _, r := range v.endpoints {
		waits, bad = waits || r.state.Good == nil && !r.absent && !r.bad, bad || r.bad
		good = good || r.state.Good != nil
	}
	switch {
	case waits || bad && !good: // without good endpoints, a rejected resource counts as not received yet
		return ads.Waiting
	case good:
		return ads.All
	}
	return ads.Nothing
}

func (v *view) some() bool {
	for _, all := range []map[string]*viewed{v.clusters, v.endpoints} {
		for _, r := range all {
			if r.state.Good != nil {
				return true
			}
		}
	}
	return false
}

func (v *view) outage() *Outage {
	if v.lost == nil || v.lost.over.Load() {
		return nil
	}
	return v.lost
}

func (v *view) snapshot() Snapshot {
	s := Snapshot{Server: v.server, For: v.needed, Clusters: make(map[string]State), Endpoints: make(map[string]State)}
	for name, r := range v.clusters {
		s.Clusters[name] = r.state
	}
	for name, r := range v.endpoints {
		s.Endpoints[name] = r.state
	}
	return s
}

// event queues a change, because a watcher must not block. news reports whether the follower must
// be notified of it.
func (r *viewed) event(change func() (news bool)) {
	r.view.of.serial.Enqueue(func() {
		if !r.gone {
			r.view.of.happened(r.view, change())
		}
	})
}

func (r *viewed) Resource(good *Resource, version string) {
	r.event(func() bool {
		r.state, r.absent = State{Good: good, Version: version}, false
		r.bad = false
		return true
	})
}

func (r *viewed) Unknown(err error, absent bool) {
	r.event(func() bool {
		r.state.Err, r.view.err = err, err
		r.absent = r.absent || absent
		_, r.bad = errors.AsType[refusal](err)
		return true
	})
}

func (r *viewed) Rejected(err error) {
	r.event(func() bool {
		if g := r.view.of; g.used == r.view.server {
			g.follower.Rejected(err)
		}
		return false
	})
}

func (r *viewed) Lost(o *Outage) {
	r.event(func() bool {
		r.view.lost = o
		r.view.of.order.Reachable(r.view.server, o == nil)
		return false
	})
}
