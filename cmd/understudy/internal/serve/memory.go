package serve

import (
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
)

type memory struct {
	held        int
	connections map[string]*connection // by the client's address
}

type connection struct {
	held    int
	streams map[*client]bool
}

// The estimated bytes held for a requested name, in addition to the name itself.
const (
	perName   = 600 // a name that is not served has its own maps in the cache
	perServed = 200
)

// join adds a stream. A client needs only one stream on a connection. Each further stream is
// charged with the memory that a request in transit may hold.
func (c *clients) join(s *client) {
	if c.connections[s.address] == nil {
		c.connections[s.address] = &connection{streams: make(map[*client]bool)}
	}
	on := c.connections[s.address]
	on.streams[s] = true
	if len(on.streams) > 1 {
		c.hold(s, "", c.limits.Message)
	}
}

func (c *clients) leave(s *client) {
	on := c.connections[s.address]
	if on == nil || !on.streams[s] {
		return
	}
	for _, n := range s.held {
		c.held -= n
		on.held -= n
	}
	if delete(on.streams, s); len(on.streams) == 0 {
		delete(c.connections, s.address)
	}
}

// charge records the memory for the names that a stream requests. It returns an error if there are
// too many names.
func (c *clients) charge(s *client, typeURL string, sub cachev3.Subscription) error {
	if n := len(sub.SubscribedResources()); n > c.limits.Names {
		return c.refuse(s, tooMuch("max-names", n, "names of a type", c.limits.Names))
	}
	asked := sub.SubscribedResources()
	n := perServed*len(sub.ReturnedResources()) + perName*len(asked)
	for name := range asked {
		n += len(name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hold(s, typeURL, n-(perName-perServed)*inBoth(asked, c.clusters))
	return nil
}

// hold records n bytes for a stream's requests of one type. If all clients together hold too much,
// it ends the streams of the connection that holds the most.
func (c *clients) hold(s *client, typeURL string, n int) {
	on := c.connections[s.address]
	if on == nil || !on.streams[s] {
		return
	}
	on.held += n - s.held[typeURL]
	c.held += n - s.held[typeURL]
	s.held[typeURL] = n
	if c.held <= c.limits.Memory<<20 {
		return
	}
	for _, other := range c.connections {
		if other.held > on.held {
			on = other
		}
	}
	for s := range on.streams {
		c.leave(s)
		_ = c.end(s, &limited{"client-memory", "no other connection asks for as much, and together they ask for too much"})
	}
}

func inBoth[A, B any](a map[string]A, b map[string]B) (n int) {
	if len(a) > len(b) {
		return inBoth(b, a)
	}
	for key := range a {
		if _, ok := b[key]; ok {
			n++
		}
	}
	return n
}
