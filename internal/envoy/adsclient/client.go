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

// missingAfter is how long a requested resource may take to arrive before it counts as missing
// (gRFC A57; docs/waits.md).
const missingAfter = 15 * time.Second

// shortMissingAfter is for a resource that was missing before, if clusters arrived that short ago:
// a server that has the endpoints of a cluster sends them soon after it.
const shortMissingAfter = 500 * time.Millisecond

// client keeps the stream to one server. serial guards what changes after newClient, unless noted
// otherwise.
type client struct {
	server   Server
	key      key
	users    int // guarded by the registry's lock
	ctx      context.Context
	stop     context.CancelFunc
	recorder estats.MetricsRecorder

	serial       serial.Serializer
	topics       [2]*topic // one for each of types
	current      *stream   // nil between streams
	answered     bool      // a response has arrived on the current stream
	ended        time.Time // when the last stream with a response ended; zero while one is open, and before
	attempts     int       // streams since the last response, for the backoff
	pings        pings
	second       secondStream
	outage       *Outage // why the server is unreachable, or nil
	ignoredType  string
	lastClusters time.Time // when the last response with clusters arrived
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

// lastMessage is now if the current stream has had a response.
func (c *client) lastMessage() (last time.Time) {
	c.serial.Do(func() { last = c.ended })
	if last.IsZero() {
		return time.Now()
	}
	return last
}
