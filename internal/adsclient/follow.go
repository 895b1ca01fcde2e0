package adsclient

import (
	"errors"
	"fmt"
	"strings"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/internal/ads"
	"github.com/understudy-lb/understudy/internal/serial"
)

// Target is what a channel wants to know, and whom to ask.
type Target struct {
	// Servers are the management servers in the order of preference, at least one:
	// package ads says which is asked when, and that all is of one of them.
	Servers []Server
	// ReachabilityOnly asks the next server also where nothing is waited for (A95).
	ReachabilityOnly bool
	// Cluster is the one whose endpoints are wanted.
	Cluster string
}

// Follower is told about a target. Its methods are called one at a time, must return
// at once and must not call this package. None is called after the end.
type Follower interface {
	// Endpoints is called with what is to be used, in place of what was before. It is
	// shared and must not be modified.
	Endpoints(*endpointv3.ClusterLoadAssignment)
	// Unknown is called while there is nothing to be used, when the reason is another.
	Unknown(error)
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
	g.serial.Do(g.ask)
	return g
}

// Following is a target that is followed. Its methods must not be called from inside a
// call of the Follower's.
type Following struct {
	target   Target
	follower Follower
	recorder estats.MetricsRecorder

	// All below is touched in events of the serializer only. What servers say is queued,
	// since watchers must not call back.
	serial serial.Serializer
	order  *ads.Servers
	views  []*view // of the servers asked
	used   int     // the server whose view was passed on last, or -1
	why    string  // the reason that was passed on last, "" after endpoints
}

// view is what one server says about the target. It is a Watcher.
type view struct {
	of     *Following
	server int
	cancel func()

	endpoints *endpointv3.ClusterLoadAssignment
	err       error // why there are none
	has       ads.Has
}

// ask asks those servers that are to be asked, and no others.
func (g *Following) ask() {
	for len(g.views) > g.order.Asked() {
		last := len(g.views) - 1
		g.views[last].cancel()
		g.views = g.views[:last]
	}
	for len(g.views) < g.order.Asked() {
		v := &view{of: g, server: len(g.views)}
		g.views = append(g.views, v)
		v.cancel = Watch(g.target.Servers[v.server], Endpoints, g.target.Cluster, v, g.recorder)
	}
}

// Stop ends it. The second time changes nothing.
func (g *Following) Stop() {
	g.serial.Do(func() {
		for _, v := range g.views {
			v.cancel()
		}
		g.views = nil
	})
}

// Heard returns when the server was last heard that is in use: now, while it answers.
func (g *Following) Heard() (at time.Time) {
	g.serial.Do(func() { at = Heard(g.target.Servers[max(g.used, 0)]) })
	return at
}

// event queues what happens to the view, unless its server is asked no longer. Change
// returns whether there is news in it for the follower, if the view is the one in use.
func (v *view) event(change func(*ads.Servers) (news bool)) {
	g := v.of
	g.serial.Enqueue(func() {
		if v.server >= len(g.views) || g.views[v.server] != v {
			return
		}
		news := change(g.order)
		g.ask()
		g.tell(v, news)
	})
}

// Resource implements Watcher.
func (v *view) Resource(m proto.Message) {
	v.event(func(order *ads.Servers) bool {
		v.endpoints, v.err, v.has = m.(*endpointv3.ClusterLoadAssignment), nil, ads.All
		order.Sent(v.server, v.has)
		return true
	})
}

// Unknown implements Watcher.
func (v *view) Unknown(err error, absent bool) {
	v.event(func(order *ads.Servers) bool {
		v.err = err
		if absent {
			v.has = ads.Nothing
		}
		order.Sent(v.server, v.has)
		return true
	})
}

// Reachable implements Watcher.
func (v *view) Reachable(is bool) {
	v.event(func(order *ads.Servers) bool {
		order.Reachable(v.server, is)
		return false
	})
}

// tell tells the follower what is news, of changed if that is the view in use.
func (g *Following) tell(changed *view, news bool) {
	used := g.order.Used()
	if used != g.used {
		g.log(used)
		g.used, changed, news = used, g.views[used], true
	}
	switch {
	case !news:
	case used < 0:
		g.unknown(g.whyNone())
	case changed != g.views[used]:
	case changed.err != nil:
		g.unknown(changed.err)
	default:
		g.why = ""
		g.follower.Endpoints(changed.endpoints)
	}
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

// whyNone returns why no server has anything, nil while one that is asked has not said.
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
