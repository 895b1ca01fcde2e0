package adsclient

import (
	"errors"
	"fmt"
	"strings"
	"time"

	estats "google.golang.org/grpc/experimental/stats"

	"github.com/understudy-lb/understudy/internal/core/ads"
	"github.com/understudy-lb/understudy/internal/serial"
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
	// Needs returns the resources that the target needs. clusters holds the states of those clusters
	// that it has needed so far.
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
	// Lost is called when the server in use, or one before it in the order, becomes unreachable,
	// and again when the reason changes. Outage.Heard is set only for the server in use; the
	// snapshot is then unconfirmed. Lost(nil) is called when the outage ends.
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
	g.serial.SetHooks(&serial.Hooks{Begin: func() {}, Flush: g.tell})
	g.serial.Do(g.ask)
	return g
}

// Following is a target that is being followed. A Follower must call only Stop.
type Following struct {
	target   Target
	follower Follower
	recorder estats.MetricsRecorder

	// serial guards the fields below.
	serial serial.Serializer
	order  *ads.Servers
	views  []*view
	news   bool
	used   int    // index of the server of the last snapshot passed to Changed, or -1
	why    string // the last reason passed to Unknown, or "" after a snapshot

	lost *Outage
	by   int
}

// ask opens and closes views, so that each of the first order.Asked() servers has one.
func (g *Following) ask() {
	for len(g.views) > g.order.Asked() {
		last := len(g.views) - 1
		g.views[last].close()
		g.views = g.views[:last]
	}
	for len(g.views) < g.order.Asked() {
		v := newView(g, len(g.views))
		g.views = append(g.views, v)
		v.ask()
	}
}

// Stop ends the subscriptions. It may be called more than once, even by the Follower.
func (g *Following) Stop() {
	g.serial.Run(func() {
		for _, v := range g.views {
			v.close()
		}
		g.views = nil
	})
}

// Heard returns the time at which the server in use last sent a message. While its stream is up,
// this is the current time.
func (g *Following) Heard() (at time.Time) {
	g.serial.Do(func() { at = Heard(g.target.Servers[max(g.used, 0)]) })
	return at
}

// EndpointsFailed calls EndpointsFailed for each server with a subscription.
func (g *Following) EndpointsFailed() {
	asked := 0
	g.serial.Do(func() { asked = len(g.views) })
	for _, server := range g.target.Servers[:asked] {
		EndpointsFailed(server)
	}
}

// happened handles a change of a view. Changes that occur while the follower is being called cause
// only one further call.
func (g *Following) happened(v *view, news bool) {
	if news {
		v.news, g.news = true, true
		g.order.Sent(v.server, v.has(v.ask()))
	}
	g.ask()
}

// shown returns the index of the server whose snapshot is passed on, or -1. This is the server in
// use or, before a server has sent all resources, the first one with a good resource.
func (g *Following) shown() int {
	if used := g.order.Used(); used >= 0 {
		return used
	}
	for i, v := range g.views {
		if v.some() {
			return i
		}
	}
	return -1
}

func (g *Following) tell() {
	shown := g.shown()
	switch {
	case len(g.views) == 0:
		return
	case shown < 0:
		if g.news {
			g.unknown(g.whyNone())
		}
	case shown != g.used || g.views[shown].news:
		if shown != g.used {
			g.log(shown)
		}
		g.used, g.why = shown, ""
		g.follower.Changed(g.views[shown].snapshot())
	}
	g.news = false
	for _, v := range g.views {
		v.news = false
	}
	g.tellLost()
}

func (g *Following) unknown(err error) {
	if err != nil && err.Error() != g.why {
		g.why = err.Error()
		g.follower.Unknown(err)
	}
}

func (g *Following) log(used int) {
	uri := g.target.Servers[used].URI
	switch {
	case used < g.used:
		logger.Infof("eds: cluster %q: back to management server %s", g.target.Cluster, uri)
	case used > 0:
		logger.Warningf("eds: cluster %q: management server %s is used, in place of %s", g.target.Cluster, uri, g.target.Servers[0].URI)
	}
}

// whyNone combines the reasons of all subscribed servers for having no snapshot. It returns nil if
// a server has not reported a reason yet.
func (g *Following) whyNone() error {
	var texts []string
	for i, v := range g.views {
		if v.err == nil {
			return nil
		}
		text := v.err.Error()
		if i > 0 {
			text = strings.TrimPrefix(text, fmt.Sprintf("eds: no %s %q ", Endpoints.noun, g.target.Cluster))
		}
		texts = append(texts, text)
	}
	return errors.New(strings.Join(texts, "; "))
}

// tellLost passes on the outage if it has changed: the outage of the server in use or, if there is
// none, of the first unreachable server before it.
func (g *Following) tellLost() {
	if g.used < 0 || g.used >= len(g.views) {
		return
	}
	lost := g.views[g.used].outage()
	if lost != nil && lost.partial {
		lost = nil
	}
	for i := 0; lost == nil && i < g.used; i++ {
		lost = g.views[i].outage()
	}
	if lost == g.lost && (lost == nil || g.by == g.used) {
		return
	}
	g.lost, g.by = lost, g.used
	if lost != nil && lost != g.views[g.used].lost {
		lost = &Outage{Err: fmt.Errorf("%v; %s is used", lost.Err, g.target.Servers[g.used].URI), Since: lost.Since}
	}
	g.follower.Lost(lost)
}
