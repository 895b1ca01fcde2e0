package adsclient

import (
	"context"
	"fmt"
	"time"
	"weak"

	estats "google.golang.org/grpc/experimental/stats"

	"github.com/understudy-lb/understudy/internal/core/ads"
	"github.com/understudy-lb/understudy/internal/lb/serial"
)

// If a resource takes longer than this to arrive, we consider it missing (gRFC A57; docs/waits.md).
const missingAfter = 15 * time.Second

// A resource that was missing before gets only this long if we've just received clusters, i.e. less
// than this long ago. A server that has a cluster's endpoints usually sends them right after the
// cluster.
const shortMissingAfter = 500 * time.Millisecond

// client keeps the stream to one server. Unless noted otherwise, serial guards everything that
// changes after newClient.
type client struct {
	server   Server
	key      key
	users    int // guarded by the registry's lock
	ctx      context.Context
	stop     context.CancelFunc
	recorder estats.MetricsRecorder

	serial       serial.Serializer
	topics       [2]*topic // same order as types
	current      *stream   // nil between streams
	answered     bool      // there has been a response on the current stream
	ended        time.Time // when the last stream that had a response ended; zero while there's one open
	attempts     int       // streams since the last response, for the backoff
	pings        pings
	second       secondStream
	outage       *Outage // nil if the server is reachable
	ignoredType  string
	lastClusters time.Time // time of the last response with clusters
}

func newClient(server Server, k key, r estats.MetricsRecorder) *client {
	ctx, cancel := context.WithCancel(context.Background())
	c := &client{server: server, key: k, ctx: ctx, stop: cancel, recorder: r}
	for i, typ := range types {
		c.topics[i] = &topic{
			Type:      typ,
			index:     i,
			client:    c,
			subs:      ads.New(),
			watchers:  make(map[string]map[Watcher]bool),
			timers:    make(map[ads.Timer]*time.Timer),
			delivered: make(map[string]weak.Pointer[Resource]),
			silences:  make(map[string]*Outage),
		}
	}
	c.current = c.newStream(false)
	go c.run(c.current)
	return c
}

func (c *client) topic(url string) *topic {
	for _, t := range c.topics {
		if t.url == url {
			return t
		}
	}
	return nil
}

func (c *client) newOutage(reason error) *Outage {
	err := fmt.Errorf("management server %s cannot be reached: %v", c.server.URI, reason)
	return &Outage{Err: err, Since: time.Now(), LastMessage: c.ended}
}

func (c *client) recordOutage(reason error) {
	o := c.newOutage(reason)
	if c.outage != nil {
		if o.Err.Error() == c.outage.Err.Error() {
			return
		}
		o.Since = c.outage.Since
	}
	c.outage = o
	for _, t := range c.topics {
		clear(t.silences)
		for name := range t.watchers {
			t.notifyLost(name, o)
		}
	}
}

func (c *client) endOutages() {
	for _, t := range c.topics {
		for name := range t.watchers {
			if c.outage != nil || t.silences[name] != nil {
				t.notifyLost(name, nil)
			}
		}
		clear(t.silences)
	}
	c.outage = nil
}

// lastMessage returns the current time if there's been a response on the current stream.
func (c *client) lastMessage() (last time.Time) {
	c.serial.Do(func() { last = c.ended })
	if last.IsZero() {
		return time.Now()
	}
	return last
}
