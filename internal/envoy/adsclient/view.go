package adsclient

import (
	"errors"

	"github.com/understudy-lb/understudy/internal/core/ads"
)

// State is the state of a resource on one server. It's zero until we know something about it.
type State struct {
	Good    *Resource
	Version string // version of the response with Good, or ""
	Err     error
}

// Snapshot has the states of a target's resources on one server, by name.
type Snapshot struct {
	Server              int // index in Target.Servers
	Clusters, Endpoints map[string]State
	For                 any // copied from Needs.For
}

// Needs lists the resources that a target needs. Whole means that the target also has endpoints
// that aren't resources, e.g. from DNS.
type Needs struct {
	Clusters, Endpoints []string
	Whole               bool
	For                 any // anything, copied to Snapshot.For
}

// view has a target's resources on one server.
type view struct {
	*Following
	client  *client
	server  int
	changed bool // there's something new since the last snapshot

	resources map[resourceName]*viewedResource
	needed    any // last Needs.For
	err       error
	outage    *Outage
}

type resourceName struct {
	*Type
	name string
}

type viewedResource struct {
	view         *view
	state        State
	absent       bool
	unsubscribed bool
	cancel       func()
}

func (v *view) update() {
	needs := v.target.Needs(v.snapshot().Clusters)
	v.changed, v.needed = true, needs.For
	v.subscribe(needs)
	v.order.Sent(v.server, v.availability(needs.Whole))
}

func (v *view) subscribe(needs Needs) {
	needed := make(map[resourceName]bool)
	for i, names := range [][]string{needs.Clusters, needs.Endpoints} {
		for _, name := range names {
			key := resourceName{types[i], name}
			needed[key] = true
			if v.resources[key] == nil {
				r := &viewedResource{view: v}
				v.resources[key] = r
				r.cancel = v.client.watch(types[i], name, r)
			}
		}
	}
	for key, r := range v.resources {
		if !needed[key] {
			r.unsubscribed = true
			delete(v.resources, key)
			r.cancel()
		}
	}
}

func (v *view) close() {
	v.subscribe(Needs{})
	clients.release(v.client)
}

func (v *view) availability(whole bool) ads.Completeness {
	// As long as there are no valid endpoints, we treat a rejected resource as if it hadn't
	// arrived. The server may still send a better one.
	waiting, rejected, good := false, false, whole
	for key, r := range v.resources {
		_, isRejected := errors.AsType[rejectedError](r.state.Err)
		waiting = waiting || r.state.Good == nil && !r.absent && !isRejected
		rejected = rejected || isRejected
		good = good || r.state.Good != nil && key.Type == Endpoints
	}
	switch {
	case waiting || rejected && !good:
		return ads.Waiting
	case good:
		return ads.HasAll
	}
	return ads.HasNone
}

func (v *view) snapshot() Snapshot {
	s := Snapshot{Server: v.server, For: v.needed, Clusters: make(map[string]State), Endpoints: make(map[string]State)}
	for key, r := range v.resources {
		if key.Type == Clusters {
			s.Clusters[key.name] = r.state
		} else {
			s.Endpoints[key.name] = r.state
		}
	}
	return s
}

func (r *viewedResource) enqueue(update func(v *view)) {
	// Watchers must not block, so we queue the update.
	v := r.view
	v.serial.Enqueue(func() {
		if !r.unsubscribed {
			update(v)
			v.updateViews()
		}
	})
}

func (r *viewedResource) Resource(good *Resource, version string) {
	r.enqueue(func(v *view) {
		r.state, r.absent = State{Good: good, Version: version}, false
		v.update()
	})
}

func (r *viewedResource) Unknown(err error, absent bool) {
	r.enqueue(func(v *view) {
		r.state.Err, v.err = err, err
		r.absent = r.absent || absent
		v.update()
	})
}

func (r *viewedResource) Rejected(err error) {
	r.enqueue(func(v *view) {
		if v.used == v.server {
			v.follower.Rejected(err)
		}
	})
}

func (r *viewedResource) Lost(o *Outage) {
	r.enqueue(func(v *view) {
		v.outage = o
		v.order.Reachable(v.server, o == nil)
	})
}
