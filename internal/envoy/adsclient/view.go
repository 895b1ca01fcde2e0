package adsclient

import (
	"errors"

	"github.com/understudy-lb/understudy/internal/core/ads"
)

// State is the state of a resource on one server. It is zero until the client knows this state.
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

// Needs lists the resources that a target needs. Whole means that the target has endpoints even
// without these resources.
type Needs struct {
	Clusters, Endpoints []string
	Whole               bool
	For                 any // arbitrary data, copied to Snapshot.For
}

// view holds the subscriptions of a target on one server, and the states of their resources.
type view struct {
	following *Following
	server    int
	changed   bool

	clusters, endpoints map[string]*viewedResource
	needed              any // Needs.For of the last call of Target.Needs
	err                 error
	lastOutage          *Outage
}

type viewedResource struct {
	view         *view
	state        State
	absent       bool
	rejected     bool // the last update was rejected, and there is no earlier valid resource
	unsubscribed bool
	cancel       func()
}

func newView(g *Following, server int) *view {
	return &view{following: g, server: server, clusters: make(map[string]*viewedResource), endpoints: make(map[string]*viewedResource)}
}

// updateSubscriptions subscribes to the resources that the target needs now, ends the other
// subscriptions, and returns the needs.
func (v *view) updateSubscriptions() Needs {
	needs := v.following.target.Needs(v.snapshot().Clusters)
	v.needed = needs.For
	v.subscribe(Clusters, v.clusters, needs.Clusters)
	v.subscribe(Endpoints, v.endpoints, needs.Endpoints)
	return needs
}

func (v *view) subscribe(typ *Type, resources map[string]*viewedResource, names []string) {
	needed := make(map[string]bool)
	for _, name := range names {
		needed[name] = true
		if resources[name] == nil {
			r := &viewedResource{view: v}
			resources[name] = r
			r.cancel = Watch(v.following.target.Servers[v.server], typ, name, r, v.following.recorder)
		}
	}
	for name, r := range resources {
		if !needed[name] {
			r.unsubscribed = true
			delete(resources, name)
			r.cancel()
		}
	}
}

func (v *view) close() {
	v.subscribe(Clusters, v.clusters, nil)
	v.subscribe(Endpoints, v.endpoints, nil)
}

// availability returns ads.Waiting if a needed resource has not arrived yet, ads.HasAll if there
// are valid endpoints, and ads.HasNone otherwise.
func (v *view) availability(needs Needs) ads.Completeness {
	waiting, rejected, good := false, false, needs.Whole
	for _, r := range v.clusters {
		waiting, rejected = waiting || r.state.Good == nil && !r.absent && !r.rejected, rejected || r.rejected
	}
	for _, r := range v.endpoints {
		waiting, rejected = waiting || r.state.Good == nil && !r.absent && !r.rejected, rejected || r.rejected
		good = good || r.state.Good != nil
	}
	switch {
	case waiting || rejected && !good: // without valid endpoints, a rejected resource counts as not received
		return ads.Waiting
	case good:
		return ads.HasAll
	}
	return ads.HasNone
}

func (v *view) hasGood() bool {
	for _, resources := range []map[string]*viewedResource{v.clusters, v.endpoints} {
		for _, r := range resources {
			if r.state.Good != nil {
				return true
			}
		}
	}
	return false
}

func (v *view) outage() *Outage {
	if v.lastOutage == nil || v.lastOutage.recovered.Load() {
		return nil
	}
	return v.lastOutage
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

// enqueue queues a change of the state, because a Watcher must not block. change reports whether
// the follower must be notified.
func (r *viewedResource) enqueue(change func() (notify bool)) {
	r.view.following.serial.Enqueue(func() {
		if !r.unsubscribed {
			r.view.following.viewChanged(r.view, change())
		}
	})
}

func (r *viewedResource) Resource(good *Resource, version string) {
	r.enqueue(func() bool {
		r.state, r.absent = State{Good: good, Version: version}, false
		r.rejected = false
		return true
	})
}

func (r *viewedResource) Unknown(err error, absent bool) {
	r.enqueue(func() bool {
		r.state.Err, r.view.err = err, err
		r.absent = r.absent || absent
		_, r.rejected = errors.AsType[rejectedError](err)
		return true
	})
}

func (r *viewedResource) Rejected(err error) {
	r.enqueue(func() bool {
		if g := r.view.following; g.used == r.view.server {
			g.follower.Rejected(err)
		}
		return false
	})
}

func (r *viewedResource) Lost(o *Outage) {
	r.enqueue(func() bool {
		r.view.lastOutage = o
		r.view.following.order.Reachable(r.view.server, o == nil)
		return false
	})
}
