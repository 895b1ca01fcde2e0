package adsclient

import (
	"errors"

	"github.com/understudy-lb/understudy/internal/core/ads"
)

// State is what one server says of a resource that is needed. It is empty while the
// server has said nothing.
type State struct {
	Good    *Resource // the last good one
	Version string    // of the response that brought it, "" where that is not known
	Err     error     // why there is none
}

// Snapshot is what one server says of all that a target needs, by name.
type Snapshot struct {
	Server              int // whose number in the list of servers this is
	Clusters, Endpoints map[string]State
	For                 any // that of Needs
}

// Needs says which resources a target needs, as far as its known clusters tell. Whole
// means that it has endpoints which need none of them.
type Needs struct {
	Clusters, Endpoints []string
	Whole               bool
	For                 any // what the target made of its clusters, for the next Snapshot
}

// view is what one server says about a target. It is touched in events of the Following's
// serializer only.
type view struct {
	of     *Following
	server int
	news   bool // it has changed since the follower was told

	clusters, endpoints map[string]*viewed
	needed              any     // the For of what is needed now
	err                 error   // the last that was said
	lost                *Outage // why the server cannot be reached, nil while it can
}

// viewed is one resource of a view. It is a Watcher.
type viewed struct {
	view   *view
	state  State
	absent bool // the server has said that there is none
	bad    bool // the last one was rejected, and there is no good one
	gone   bool // it is asked for no longer
	cancel func()
}

func newView(g *Following, server int) *view {
	return &view{of: g, server: server, clusters: make(map[string]*viewed), endpoints: make(map[string]*viewed)}
}

// ask asks the server for what is needed, and for nothing else.
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

// close asks for nothing from now on.
func (v *view) close() {
	v.askFor(Clusters, v.clusters, nil)
	v.askFor(Endpoints, v.endpoints, nil)
}

// has returns how much of what is needed is there.
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
	case waits || bad && !good: // what is rejected counts as sent beside what is good
		return ads.Waiting
	case good:
		return ads.All
	}
	return ads.Nothing
}

// some returns whether there is anything good.
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

// outage returns why the server cannot be reached, nil if it can.
func (v *view) outage() *Outage {
	if v.lost == nil || v.lost.over.Load() {
		return nil
	}
	return v.lost
}

// snapshot returns what the server says now.
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

// event queues what happens to a resource, because watchers must not call back. change
// returns whether it concerns the follower.
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
