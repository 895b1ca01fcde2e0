package serve

import (
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
)

type memory struct {
	heldBytes   int
	connections map[string]*connection // by the client's address
}

type connection struct {
	heldBytes int
	streams   map[*clientStream]bool
}

// The estimated memory in bytes for a requested name, in addition to the bytes of the name itself.
const (
	bytesPerName       = 600 // larger, because the cache has maps for each name that is not served
	bytesPerServedName = 200
)

// addToConnection adds a stream to its connection. A client needs only one stream on a connection,
// so each further stream is charged with the memory of a request that is being received.
func (c *clients) addToConnection(s *clientStream) {
	if c.connections[s.address] == nil {
		c.connections[s.address] = &connection{streams: make(map[*clientStream]bool)}
	}
	conn := c.connections[s.address]
	conn.streams[s] = true
	if len(conn.streams) > 1 {
		c.setMemory(s, "", c.limits.Message)
	}
}

func (c *clients) removeFromConnection(s *clientStream) {
	conn := c.connections[s.address]
	if conn == nil || !conn.streams[s] {
		return
	}
	for _, n := range s.memoryByType {
		c.heldBytes -= n
		conn.heldBytes -= n
	}
	if delete(conn.streams, s); len(conn.streams) == 0 {
		delete(c.connections, s.address)
	}
}

// charge records the memory for the names that a stream requests. It returns an error if the stream
// requests too many names.
func (c *clients) charge(s *clientStream, typeURL string, sub cachev3.Subscription) error {
	if n := len(sub.SubscribedResources()); n > c.limits.Names {
		return c.refuse(s, newLimitError("max-names", n, "names of a type", c.limits.Names))
	}
	requested := sub.SubscribedResources()
	n := bytesPerServedName*len(sub.ReturnedResources()) + bytesPerName*len(requested)
	for name := range requested {
		n += len(name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setMemory(s, typeURL, n-(bytesPerName-bytesPerServedName)*countCommonKeys(requested, c.clusters))
	return nil
}

// setMemory records n bytes for a stream's requests of one type. If all clients together use too
// much memory, it ends the streams of the connection that uses the most.
func (c *clients) setMemory(s *clientStream, typeURL string, n int) {
	conn := c.connections[s.address]
	if conn == nil || !conn.streams[s] {
		return
	}
	conn.heldBytes += n - s.memoryByType[typeURL]
	c.heldBytes += n - s.memoryByType[typeURL]
	s.memoryByType[typeURL] = n
	if c.heldBytes <= c.limits.Memory<<20 {
		return
	}
	for _, other := range c.connections {
		if other.heldBytes > conn.heldBytes {
			conn = other
		}
	}
	for s := range conn.streams {
		c.removeFromConnection(s)
		_ = c.endStream(s, &limitError{"client-memory", "no other connection requests as much, and all connections together request too much"})
	}
}

func countCommonKeys[A, B any](a map[string]A, b map[string]B) (n int) {
	if len(a) > len(b) {
		return countCommonKeys(b, a)
	}
	for key := range a {
		if _, ok := b[key]; ok {
			n++
		}
	}
	return n
}
