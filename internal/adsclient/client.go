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

// missingAfter is how long a resource has to come once it was asked for (A57; docs/waits.md).
const missingAfter = 15 * time.Second

// onItsWay is how long it has where it was missing while nobody watched it, and a cluster came
// within that time. A server sends clusters before their endpoints, so these follow soon, or
// not at all.
const onItsWay = 500 * time.Millisecond

// client is one stream, again and again. Everything that changes after its making
// is touched only in events of its serializer, except where noted.
type client struct {
	server   Server
	key      key
	users    int             // guarded by the registry
	ctx      context.Context // ends with stop
	stop     context.CancelFunc
	recorder estats.MetricsRecorder // nil for none

	serial   serial.Serializer
	topics   []*topic  // one a type
	answered bool      // something came on the current stream
	lost     *Outage   // why the server cannot be reached, nil while it can
	current  *stream   // nil between two
	ignored  string    // logged last: a type
	news     time.Time // when clusters were sent last

	pinging pinging
	doubt   doubt

	ended atomic.Pointer[time.Time] // when a stream on which the server answered ended; nil while there is one
}

// newClient starts a client that nobody watches yet. It opens its stream when
// somebody does.
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

// topic returns what is known about the resources of a type, nil for an unknown type.
func (c *client) topic(url string) *topic {
	for _, t := range c.topics {
		if t.url == url {
			return t
		}
	}
	return nil
}

// lose notes why the server cannot be reached.
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

// silent reports whether the server has not answered for so long that a resource would be
// missing: on this stream, nor on one that ended since.
func (c *client) silent() bool {
	if c.answered {
		return false
	}
	ended := c.ended.Load()
	return ended == nil || time.Since(*ended) >= missingAfter
}

// reached notes that the server can be reached.
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

// setLost tells all watchers.
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

// opened begins a stream. What was asked for on it already is not asked for twice.
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

// closed ends the stream. err says why; it is nil where that is no failure.
func (c *client) closed(err error) {
	if c.answered {
		err = nil // A57
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
