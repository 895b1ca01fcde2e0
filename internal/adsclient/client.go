package adsclient

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/understudy-lb/understudy/internal/ads"
	"github.com/understudy-lb/understudy/internal/serial"
)

// missingAfter is how long a resource has to come once it was asked for (A57).
const missingAfter = 15 * time.Second

// client is one stream, again and again. Everything that changes after its making
// is touched only in events of its serializer, except where noted.
type client struct {
	server   Server
	key      key
	users    int // guarded by the registry
	stop     context.CancelFunc
	recorder recorder

	serial   serial.Serializer
	subs     *ads.Subscriptions
	watchers map[string]map[*watch]bool // by name of the cluster
	timers   map[ads.Timer]*time.Timer
	requests *mailbox // of the current stream, or nil
	renew    func()   // ends the current stream, or nil
	rejected string   // logged last
	ignored  string   // likewise: a type

	lost atomic.Pointer[time.Time] // when a stream on which the server answered ended; nil while there is one
}

// watch is one watcher; a watcher may watch twice.
type watch struct{ Watcher }

// newClient starts a client that nobody watches yet. It opens its stream when
// somebody does.
func newClient(server Server, k key, r metricsRecorder) *client {
	ctx, cancel := context.WithCancel(context.Background())
	c := &client{
		server:   server,
		key:      k,
		stop:     cancel,
		recorder: newRecorder(r, server.URI),
		subs:     ads.New(),
		watchers: make(map[string]map[*watch]bool),
		timers:   make(map[ads.Timer]*time.Timer),
	}
	go c.run(ctx)
	return c
}

func (c *client) watch(cluster string, w Watcher) *watch {
	handle := &watch{w}
	c.serial.Do(func() {
		// What is known already is for the new watcher alone.
		alone := map[string]map[*watch]bool{cluster: {handle: true}}
		c.do(c.subs.Watch(cluster), nil, alone)
		if c.watchers[cluster] == nil {
			c.watchers[cluster] = make(map[*watch]bool)
		}
		c.watchers[cluster][handle] = true
	})
	return handle
}

func (c *client) unwatch(cluster string, handle *watch) {
	c.serial.Do(func() {
		delete(c.watchers[cluster], handle)
		if len(c.watchers[cluster]) == 0 {
			delete(c.watchers, cluster)
		}
		c.do(c.subs.Unwatch(cluster), nil, c.watchers)
	})
}

// resources are those of one response, by name.
type resources map[string]*endpointv3.ClusterLoadAssignment

// do carries out what was decided, and tells watchers. decoded holds what the
// response brought that led to it, if one did.
func (c *client) do(a ads.Actions, decoded resources, watchers map[string]map[*watch]bool) {
	for _, t := range a.Stop {
		if timer, ok := c.timers[t]; ok {
			timer.Stop()
			delete(c.timers, t)
		}
	}
	for _, t := range a.Start {
		c.timers[t] = time.AfterFunc(missingAfter, func() { c.serial.Do(func() { c.expired(t) }) })
	}
	for _, d := range a.Deliver {
		c.deliver(d, decoded[d.Name], watchers[d.Name])
	}
	for _, f := range a.Fail {
		// The reason may be the status of the stream. gRPC would end the calls on a channel
		// with it, also those that wait for ready, so its text alone is passed on.
		err := fmt.Errorf("eds: no endpoints of cluster %q from %s: %v", f.Name, c.server.URI, f.Err)
		for w := range watchers[f.Name] {
			w.Unknown(err)
		}
	}
	if a.Send != nil && c.requests != nil {
		c.requests.put(a.Send)
	}
	if a.Renew && c.renew != nil {
		c.renew()
	}
}

// deliver passes a resource on. Only its bytes are kept, which are a tenth of its
// size in memory, so it is decoded again for a watcher that comes later.
func (c *client) deliver(d ads.Named, cla *endpointv3.ClusterLoadAssignment, watchers map[*watch]bool) {
	if cla == nil {
		var err error
		if cla, err = unmarshal(d.Body); err != nil { // it was decoded before
			logger.Errorf("eds: cluster %q from %s: %v", d.Name, c.server.URI, err)
			return
		}
	}
	for w := range watchers {
		w.Endpoints(cla)
	}
}

func (c *client) expired(t ads.Timer) {
	delete(c.timers, t)
	a := c.subs.Expired(t)
	for range a.Fail {
		logger.Warningf("eds: %s did not send cluster %q within %v", c.server.URI, t.Name, missingAfter)
		c.recorder.missing()
	}
	c.do(a, nil, c.watchers)
}
