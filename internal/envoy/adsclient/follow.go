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

// Target is a set of resources that a channel needs, together with the servers that may have them.
type Target struct {
	// Cluster names the target in the log.
	Cluster string
	// Servers holds at least one management server, in order of preference. Package core/ads decides
	// which one is used.
	Servers []Server
	// ReachabilityOnly allows a switch to the next server even if all resources are known (gRFC
	// A95).
	ReachabilityOnly bool
	// Needs returns the resources that the target needs. clusters holds the states of the clusters
	// that the previous result of Needs contained.
	Needs func(clusters map[string]State) Needs
}

// Follower receives the updates of a target. Its methods are called one at a time, must not block,
// and must not call this package, except Stop. A call that was already queued may arrive after
// Stop.
type Follower interface {
	// Changed is called with each new snapshot, which replaces the previous one.
	Changed(Snapshot)
	// Unknown is called while there is no snapshot to use, and again when the reason changes.
	Unknown(error)
	// Rejected is called when the server in use has sent an invalid resource. The last good
	// resource stays in use.
	Rejected(error)
	// Lost is called when the server in use, or a server before it in Target.Servers, becomes
	// unreachable, and again when the reason changes. Outage.LastMessage is set only if the server in
	// use is unreachable. Then nothing confirms the snapshot. Lost(nil) is called when the outage ends.
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

// Following is a target whose updates are sent to a Follower. The methods of the Follower must call
// no method of Following but Stop.
type Following struct {
	target   Target
	follower Follower
	recorder estats.MetricsRecorder

	// serial guards the fields below.
	serial     serial.Serializer
	order      *ads.Servers
	views      []*view
	used       int    // index of the server of the last snapshot passed to Changed, or -1
	lastReason string // the last reason passed to Unknown, or "" after a snapshot

	lastOutage     *Outage // the outage that was last reported to the follower, or nil
	lastOutageUsed int     // index of the server in use when that outage was reported
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

// Stop ends the subscriptions. It may be called more than once, and also by the Follower.
func (g *Following) Stop() {
	g.serial.Run(func() {
		for _, v := range g.views {
			v.close()
		}
		g.views = nil
	})
}

// LastMessage returns the time at which the server in use last sent a message, or the current time
// while its stream is open.
func (g *Following) LastMessage() time.Time {
	last := time.Now()
	g.serial.Do(func() {
		if len(g.views) > 0 {
			last = g.views[max(g.used, 0)].client.lastMessage()
		}
	})
	return last
}

// EndpointsFailed is called when connections to endpoints of the target have failed. To each server
// whose stream is silent we then open a second stream.
func (g *Following) EndpointsFailed() {
	g.serial.Do(func() {
		for _, v := range g.views {
			v.client.endpointsFailed()
		}
	})
}

// shown is the server in use or, before any server has sent everything, the first one with
// something valid.
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
				g.notifyOutage() // before the snapshot, which must not look confirmed by the earlier servers
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
		if v.err == nil { // this one may still have it
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
	// We look at the server in use first, and then at the ones before it.
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
