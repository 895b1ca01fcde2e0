package adsclient

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	estats "google.golang.org/grpc/experimental/stats"

	"github.com/understudy-lb/understudy/internal/core/ads"
	"github.com/understudy-lb/understudy/internal/serial"
)

// missingAfter is how long a requested resource may take to arrive before it counts as missing
// (gRFC A57; docs/waits.md).
const missingAfter = 15 * time.Second

// onItsWay replaces missingAfter for a resource that was already missing before, if a response with
// clusters arrived less than onItsWay ago. A server sends endpoints soon after their cluster, or
// never.
const onItsWay = 500 * time.Millisecond

// client maintains the stream to one server. Fields that change after newClient are guarded by
// serial, unless noted otherwise.
type client struct {
	server   Server
	key      key
	users    int // guarded by the registry's lock
	ctx      context.Context
	stop     context.CancelFunc
	recorder estats.MetricsRecorder

	serial   serial.Serializer
	topics   []*topic
	answered bool    // a response has arrived on the current stream
	lost     *Outage // why the server is unreachable, or nil
	current  *stream // nil between streams
	ignored  string
	news     time.Time // when a response with clusters last arrived

	pinging pinging
	doubt   doubt

	ended atomic.Pointer[time.Time] // when the last stream with a response ended; nil while such a stream is open
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
	for _, of := range []*Type{Clusters, Endpoints} {
		c.topics = append(c.topics, &topic{
			versions: make(map[string]string),
			passedOn: make(map[string]passedOn),
			Type:     of,
			client:   c,
			subs:     ads.New(),
			watchers: make(map[string]map[*watch]bool),
			timers:   make(map[ads.Timer]*time.Timer),
			silent:   make(map[string]*Outage),
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

func (c *client) lose(why error) {
	err := c.unreachable(why)
	if c.lost != nil && c.lost.Err.Error() == err.Error() {
		return
	}
	o := &Outage{Err: err, Since: time.Now()}
	if c.lost != nil {
		o.Since = c.lost.Since
	}
	if ended := c.ended.Load(); ended != nil {
		o.Heard = *ended
	}
	c.setLost(o)
}

func (c *client) unreachable(why error) error {
	return fmt.Errorf("management server %s cannot be reached: %v", c.server.URI, why)
}

// silent reports whether the server has sent no response for missingAfter, on any stream.
func (c *client) silent() bool {
	if c.answered {
		return false
	}
	ended := c.ended.Load()
	return ended == nil || time.Since(*ended) >= missingAfter
}

func (c *client) reached() {
	if c.lost != nil {
		c.setLost(nil)
	}
	for _, t := range c.topics {
		for name := range t.silent {
			t.setSilent(name, nil)
		}
	}
}

func (c *client) setLost(o *Outage) {
	c.lost = o
	for _, t := range c.topics {
		clear(t.silent)
		for _, watchers := range t.watchers {
			for w := range watchers {
				w.Lost(o)
			}
		}
	}
}

// opened puts a stream into use. If it was a second stream, requests that were already sent on it
// are not repeated.
func (c *client) opened(s *stream) {
	c.answered, c.current = false, s
	for i, t := range c.topics {
		t.requests = s.mail[i]
		a := t.subs.Opened()
		if a.Send != nil && slices.Equal(a.Send.Names, s.asked[i]) {
			a.Send = nil
		}
		t.do(a, nil, t.watchers)
	}
}

// closed records that the stream has ended. err is nil if this is not a failure.
func (c *client) closed(err error) {
	if c.answered {
		err = nil // after a response, the end of a stream is not a failure (gRFC A57)
	}
	c.answered = false
	if err != nil {
		c.lose(err)
	}
	for _, t := range c.topics {
		t.requests = nil
		t.drop()
		t.do(t.subs.Closed(err), nil, t.watchers)
	}
}
