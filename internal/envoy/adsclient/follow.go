package adsclient

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	estats "google.golang.org/grpc/experimental/stats"

	"github.com/understudy-lb/understudy/internal/core/ads"
	"github.com/understudy-lb/understudy/internal/lb/serial"
)

// Target has the resources that a channel needs, and the servers that may have them.
type Target struct {
	// Cluster is what the target is called in the log.
	Cluster string
	// Servers are in order of preference, and there's at least one. Package core/ads decides which
	// one to use.
	Servers []Server
	// ReachabilityOnly allows switching to the next server even if we already have all resources
	// (gRFC A95).
	ReachabilityOnly bool
	// Needs returns the resources that the target needs. clusters has the current states of the
	// clusters that it asked for last time.
	Needs func(clusters map[string]State) Needs
}

// Follower gets the updates of a target. We call its methods one at a time, and they must not
// block. They must not call back into this package either, with the exception of Stop. Even after
// Stop, a call that was already queued may still arrive.
type Follower interface {
	// Changed is called with each new snapshot, which replaces the one before.
	Changed(Snapshot)
	// Unknown is called while there's no usable snapshot, and again if the reason changes.
	Unknown(error)
	// Rejected is called if the server in use has sent an invalid resource. We keep using the last
	// good one.
	Rejected(error)
	// Lost is called when the server in use becomes unreachable, or when one before it in
	// Target.Servers does. It's called again if the reason changes, and with nil when the outage is
	// over. Outage.LastMessage is only set if it's the server in use that's unreachable, because
	// then there's nobody left to confirm the snapshot.
	Lost(*Outage)
}

// Follow sends the updates of a target to f until Stop is called.
func Follow(t Target, f Follower, recorder estats.MetricsRecorder) *Following {
	g := &Following{
		target:   t,
		follower: f,
		recorder: recorder,
		order:    ads.NewServers(len(t.Servers), t.ReachabilityOnly),
		used:     -1,
	}
	g.serial.SetHooks(&serial.Hooks{Begin: func() {}, Flush: g.notify})
	g.serial.Do(g.updateViews)
	return g
}

// Following is a target whose updates are sent to a Follower. Stop is the only method that the
// Follower itself may call.
type Following struct {
	target   Target
	follower Follower
	recorder estats.MetricsRecorder

	// serial guards the fields below.
	serial     serial.Serializer
	order      *ads.Servers
	views      []*view
	used       int    // index of the server whose snapshot we last passed to Changed, or -1
	lastReason string // last reason passed to Unknown, or "" after a snapshot

	lastOutage     *Outage // last outage passed to Lost, or nil
	lastOutageUsed int     // index of the server in use at that time
}

func (g *Following) updateViews() {
	for len(g.views) > g.order.SubscribedCount() {
		last := len(g.views) - 1
		g.views[last].close()
		g.views = g.views[:last]
	}
	for i := len(g.views); i < g.order.SubscribedCount(); i++ {
		c := clients.acquire(g.target.Servers[i], g.recorder)
		v := &view{Following: g, client: c, server: i, resources: make(map[resourceName]*viewedResource)}
		g.views = append(g.views, v)
		v.update()
	}
}

// Stop ends the subscriptions. It's fine to call it more than once, and the Follower may call it
// too.
func (g *Following) Stop() {
	g.serial.Run(func() {
		for _, v := range g.views {
			v.close()
		}
		g.views = nil
	})
}

// LastMessage returns when we last heard from the server in use. While its stream is open, that's
// the current time.
func (g *Following) LastMessage() time.Time {
	last := time.Now()
	g.serial.Do(func() {
		if len(g.views) > 0 {
			last = g.views[max(g.shown(), 0)].client.lastMessage() // notify may not have updated g.used yet
		}
	})
	return last
}

// EndpointsFailed tells us that connections to the target's endpoints have failed. If a server's
// stream is silent, we open a second one.
func (g *Following) EndpointsFailed() {
	g.serial.Do(func() {
		for _, v := range g.views {
			v.client.endpointsFailed()
		}
	})
}

// shown returns the server in use. If no server has sent everything yet, it's the first one that
// has sent anything valid.
func (g *Following) shown() int {
	if used := g.order.Used(); used >= 0 {
		return used
	}
	return slices.IndexFunc(g.views, func(v *view) bool {
		for _, r := range v.resources {
			if r.state.Good != nil {
				return true
			}
		}
		return false
	})
}

func (g *Following) notify() {
	if len(g.views) == 0 {
		return
	}
	switch shown := g.shown(); {
	case shown < 0:
		if reason := g.noSnapshotReason(); reason != "" && reason != g.lastReason {
			g.lastReason = reason
			g.follower.Unknown(errors.New(reason))
		}
	case shown != g.used || g.views[shown].changed:
		if shown != g.used {
			g.log(shown)
			g.used = shown
			if _, isInUse := g.outage(); !isInUse {
				g.notifyOutage() // must come before the snapshot, or it'd look as if the earlier servers had confirmed it
			}
		}
		g.lastReason, g.views[shown].changed = "", false
		g.follower.Changed(g.views[shown].snapshot())
	}
	g.notifyOutage()
}

func (g *Following) log(used int) {
	uri := g.target.Servers[used].URI
	switch {
	case used < g.used:
		logger.Infof("eds: cluster %q: back to management server %s", g.target.Cluster, uri)
	case used > 0:
		logger.Warningf("eds: cluster %q: management server %s is used instead of %s", g.target.Cluster, uri, g.target.Servers[0].URI)
	}
}

func (g *Following) noSnapshotReason() string {
	var texts []string
	for i, v := range g.views {
		if v.err == nil { // this server may still have it
			return ""
		}
		text := v.err.Error()
		if i > 0 {
			text = strings.TrimPrefix(text, fmt.Sprintf("eds: no %s %q ", Endpoints.noun, g.target.Cluster))
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

func (g *Following) outage() (o *Outage, isInUse bool) {
	// The server in use comes first, then the ones before it.
	for i, v := range append([]*view{g.views[g.used]}, g.views[:g.used]...) {
		if o := v.outage; o != nil && !o.recovered.Load() && (i > 0 || !o.partial) {
			return o, i == 0
		}
	}
	return nil, false
}

func (g *Following) notifyOutage() {
	if g.used < 0 {
		return
	}
	outage, isInUse := g.outage()
	if outage == g.lastOutage && (outage == nil || g.lastOutageUsed == g.used) {
		return
	}
	g.lastOutage, g.lastOutageUsed = outage, g.used
	if outage != nil && !isInUse {
		outage = &Outage{Err: fmt.Errorf("%v; %s is used", outage.Err, g.target.Servers[g.used].URI), Since: outage.Since}
	}
	g.follower.Lost(outage)
}
