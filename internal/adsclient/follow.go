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

// Target is what a channel wants to know, and whom to ask.
type Target struct {
	// Cluster is what the target is about, for the log.
	Cluster string
	// Servers are the management servers in the order of preference, at least one.
	// ads.Servers says when each is asked, and that their resources are never mixed.
	Servers []Server
	// ReachabilityOnly asks the next server even if nothing is waited for (A95).
	ReachabilityOnly bool
	// Needs says what is needed, once the state of each of these clusters is known.
	Needs func(clusters map[string]State) Needs
}

// Follower learns about a target. Its methods are called one at a time, must return at once, and
// must not call this package but for Stop. One call may still come after that.
type Follower interface {
	// Changed is called with what is to be used, in place of what was before.
	Changed(Snapshot)
	// Unknown is called while there is nothing to be used, each time the reason changes.
	Unknown(error)
	// Rejected is called when the server in use sent something bad, in place of which what
	// it sent before is used on.
	Rejected(error)
	// Lost is called when the server in use cannot be reached, or one before it, and again
	// when the reason changes. Only in the first case what is in use is not confirmed any
	// more, and Heard is set. Lost(nil) is called when that is over.
	Lost(*Outage)
}

// Follow tells f about a target until it is stopped.
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

// Following is a target that is followed. Its methods, but for Stop, must not be called from inside
// a call of the Follower's.
type Following struct {
	target   Target
	follower Follower
	recorder estats.MetricsRecorder

	// All below is touched in events of the serializer only.
	serial serial.Serializer
	order  *ads.Servers
	views  []*view // of the servers asked
	news   bool    // one of them has changed since the follower was told
	used   int     // the server whose view was passed on last, or -1
	why    string  // the reason that was passed on last, "" after a view

	lost *Outage // that was passed on last
	by   int     // the server in use then
}

// ask asks those servers that are to be asked, and no others.
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

// Stop ends the watches. To call it again changes nothing.
func (g *Following) Stop() {
	g.serial.Run(func() {
		for _, v := range g.views {
			v.close()
		}
		g.views = nil
	})
}

// Heard returns when the server in use was last heard. While it answers, that is now.
func (g *Following) Heard() (at time.Time) {
	g.serial.Do(func() { at = Heard(g.target.Servers[max(g.used, 0)]) })
	return at
}

// EndpointsFailed notes that endpoints fail which came from a server. Those that are asked may be
// gone without a word.
func (g *Following) EndpointsFailed() {
	asked := 0
	g.serial.Do(func() { asked = len(g.views) })
	for _, server := range g.target.Servers[:asked] {
		EndpointsFailed(server)
	}
}

// happened follows something that happened to a view. What comes while the follower is called becomes
// one change.
func (g *Following) happened(v *view, news bool) {
	if news {
		v.news, g.news = true, true
		g.order.Sent(v.server, v.has(v.ask()))
	}
	g.ask()
}

// shown returns the server whose view is to be passed on: the one in use or, while none
// has sent everything, the first that has sent something good. It is -1 for none.
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

// tell tells the follower what has changed.
func (g *Following) tell() {
	shown := g.shown()
	switch {
	case len(g.views) == 0: // it was stopped
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

// unknown tells the follower why there is nothing, if err is not what it was told last.
func (g *Following) unknown(err error) {
	if err != nil && err.Error() != g.why {
		g.why = err.Error()
		g.follower.Unknown(err)
	}
}

// log says which server is used from now on.
func (g *Following) log(used int) {
	uri := g.target.Servers[used].URI
	switch {
	case used < g.used:
		logger.Infof("eds: cluster %q: back to management server %s", g.target.Cluster, uri)
	case used > 0:
		logger.Warningf("eds: cluster %q: management server %s is used, in place of %s", g.target.Cluster, uri, g.target.Servers[0].URI)
	}
}

// whyNone returns why no server has anything. It is nil while a server that is asked has
// not said why.
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

// tellLost tells the follower which server cannot be reached, if that has changed: the one
// in use, or else the first before it.
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
