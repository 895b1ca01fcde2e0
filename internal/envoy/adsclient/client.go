package adsclient

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
	"weak"

	estats "google.golang.org/grpc/experimental/stats"

	"github.com/understudy-lb/understudy/internal/core/ads"
	"github.com/understudy-lb/understudy/internal/lb/serial"
)

// missingAfter is how long a requested resource may take to arrive before it counts as missing
// (gRFC A57; docs/waits.md).
const missingAfter = 15 * time.Second

// shortMissingAfter replaces missingAfter for a resource that was already missing, if a response
// with clusters arrived less than shortMissingAfter ago. A server that has the endpoints of a
// cluster sends them soon after the cluster.
const shortMissingAfter = 500 * time.Millisecond

// client maintains the stream to one server. Fields that change after newClient are guarded by
// serial, unless noted otherwise.
type client struct {
	server   Server
	key      key
	users    int // guarded by the registry's lock
	ctx      context.Context
	stop     context.CancelFunc
	recorder estats.MetricsRecorder

	serial       serial.Serializer
	topics       []*topic
	answered     bool    // a response has arrived on the current stream
	outage       *Outage // why the server is unreachable, or nil
	current      *stream // nil between streams
	ignoredType  string
	lastClusters time.Time // when the last response with clusters arrived

	pinging pinging
	second  secondStream

	// ended is the time at which the last stream with a response ended. It is nil while a stream
	// with a response is open, and before the first stream with a response has ended.
	ended atomic.Pointer[time.Time]
}

func newClient(server Server, k key, r estats.MetricsRecorder) *client {
	ctx, cancel := context.WithCancel(context.Background())
	c := &client{
		server:   server,
		key:      k,
		ctx:      ctx,
		stop:     cancel,
		recorder: r,
	}
	for _, typ := range []*Type{Clusters, Endpoints} {
		c.topics = append(c.topics, &topic{
			delivered:      make(map[string]weak.Pointer[Resource]),
			Type:           typ,
			client:         c,
			subs:           ads.New(),
			watchers:       make(map[string]map[*watch]bool),
			timers:         make(map[ads.Timer]*time.Timer),
			partialOutages: make(map[string]*Outage),
		})
	}
	go c.run()
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

func (c *client) recordOutage(reason error) {
	err := c.unreachableError(reason)
	if c.outage != nil && c.outage.Err.Error() == err.Error() {
		return
	}
	o := &Outage{Err: err, Since: time.Now()}
	if c.outage != nil {
		o.Since = c.outage.Since
	}
	if ended := c.ended.Load(); ended != nil {
		o.LastMessage = *ended
	}
	c.setOutage(o)
}

func (c *client) unreachableError(reason error) error {
	return fmt.Errorf("management server %s cannot be reached: %v", c.server.URI, reason)
}

// silent reports whether the server has sent no response for missingAfter, on any stream.
func (c *client) silent() bool {
	if c.answered {
		return false
	}
	ended := c.ended.Load()
	return ended == nil || time.Since(*ended) >= missingAfter
}

func (c *client) endOutages() {
	if c.outage != nil {
		c.setOutage(nil)
	}
	for _, t := range c.topics {
		for name := range t.partialOutages {
			t.setPartialOutage(name, nil)
		}
	}
}

func (c *client) setOutage(o *Outage) {
	c.outage = o
	for _, t := range c.topics {
		clear(t.partialOutages)
		for _, watchers := range t.watchers {
			for w := range watchers {
				w.Lost(o)
			}
		}
	}
}

// opened makes s the current stream and sends the requests for all subscriptions on it. If s was
// the second stream, it omits requests that were already sent on s.
func (c *client) opened(s *stream) {
	c.answered, c.current = false, s
	for i, t := range c.topics {
		t.requests = s.mailboxes[i]
		a := t.subs.Opened()
		if a.Send != nil && slices.Equal(a.Send.Names, s.requested[i]) {
			a.Send = nil
		}
		t.execute(a)
	}
}

// closed records that the stream has ended. err is nil if this is not a failure.
func (c *client) closed(err error) {
	if c.answered {
		err = nil // the end of a stream is not a failure if a response has arrived on it (gRFC A57)
	}
	c.answered = false
	if err != nil {
		c.recordOutage(err)
	}
	for _, t := range c.topics {
		t.requests = nil
		t.dropDelayed()
		t.execute(t.subs.Closed(err))
	}
}
