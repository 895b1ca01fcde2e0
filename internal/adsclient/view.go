package adsclient

import (
	"errors"

	"github.com/understudy-lb/understudy/internal/core/ads"
)

// State is the state of a needed resource on one server. It is empty until the server has
// responded.
type State struct {
	Good    *Resource // the last good resource
	Version string    // the version of its response, "" if unknown
	Err     error     // why there is no good resource
}

// Snapshot is the state of all the resources that a target needs on one server, by name.
type Snapshot struct {
	Server              int // index in Target.Servers
	Clusters, Endpoints map[string]State
	For                 any // Needs.For
}

// Needs lists the resources that a target needs, according to the clusters known so far. Whole
// means that the target also has endpoints that require none of these.
type Needs struct {
	Clusters, Endpoints []string
	Whole               bool
	For                 any // the target's interpretation of its clusters, copied to the next Snapshot
}

// view is a target's subscriptions on one server. It is accessed only in events of the Following's
// serializer.
type view struct {
	of     *Following
	server int
	news   bool // changed since the last call of tell

	clusters, endpoints map[string]*viewed
	needed              any     // the For of the current needs
	err                 error   // the last error
	lost                *Outage // why the server is unreachable, nil while it is reachable
}

// viewed is one resource of a view. It implements Watcher.
type viewed struct {
	view   *view
	state  State
	absent bool // the server does not have the resource
	bad    bool // the last update was rejected, and there is no good resource
	gone   bool // no longer subscribed to
	cancel func()
}

func newView(g *Following, server int) *view {
	return &view{of: g, server: server, clusters: make(map[string]*viewed), endpoints: make(map[string]*viewed)}
}

// ask updates the subscriptions to match the current needs.
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

// close cancels all subscriptions.
func (v *view) close() {
	v.askFor(Clusters, v.clusters, nil)
	v.askFor(Endpoints, v.endpoints, nil)
}

// has returns how many of the needed resources the server has sent.
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
	case waits || bad && !good: // next to a good resource, a rejected one counts as sent
		return ads.Waiting
	case good:
		return ads.All
	}
	return ads.Nothing
}

// some reports whether there is a good resource.
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

// outage returns why the server is unreachable, or nil.
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

// event queues a change of a resource, because a watcher must not block or call back. change
// reports whether the follower must be notified.
func (r *viewed) event(change func() (news bool)) {
	r.view.of.serial.Enqueue(func() {
		if !r.gone {
			r.view.of.happened(r.view, change())
		}
	})
}

// Resource implements Watcher.
func (r *viewed) Resource(good *Resource, version string) {
	r.event(func() bool {
		r.state, r.absent = State{Good: good, Version: version}, false
		r.bad = false
		return true
	})
}

// Unknown implements Watcher.
func (r *viewed) Unknown(err error, absent bool) {
	r.event(func() bool {
		r.state.Err, r.view.err = err, err
		r.absent = r.absent || absent
		_, r.bad = errors.AsType[refusal](err)
		return true
	})
}

// Rejected implements Watcher.
func (r *viewed) Rejected(err error) {
	r.event(func() bool {
		if g := r.view.of; g.used == r.view.server {
			g.follower.Rejected(err)
		}
		return false
	})
}

// Lost implements Watcher.
func (r *viewed) Lost(o *Outage) {
	r.event(func() bool {
		r.view.lost = o
		r.view.of.order.Reachable(r.view.server, o == nil)
		return false
	})
}
