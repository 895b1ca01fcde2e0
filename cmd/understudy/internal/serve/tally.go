package serve

import (
	"time"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/encoding/protowire"
)

// tally is what is counted for one cluster.
type tally struct {
	endpoints bool      // whether it has endpoints here; else they come from elsewhere
	changed   time.Time // when that or they changed last
	// By the last part of a type's name:
	acks, nacks map[string]int
}

// lacks is, for each cluster whose endpoints a client has asked for, since when it
// lacks the newest; zero where it has accepted them.
type lacks map[string]time.Time

// response is what a client was sent.
type response struct {
	nonce, version string
	names          []string
	at             time.Time
}

// changed notes that a cluster is about to change, and whether it has endpoints then. Where
// it had none before, there was nothing to lack, however long ago a client asked for them.
func (c *clients) changed(name string, endpoints bool, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clusters[name] == nil {
		c.clusters[name] = &tally{acks: make(map[string]int), nacks: make(map[string]int)}
	}
	t := c.clusters[name]
	isNew := endpoints && !t.endpoints
	t.endpoints, t.changed = endpoints, now
	for s := range c.streams {
		if since, asked := s.lacks[name]; asked && (isNew || since.IsZero()) {
			s.lacks[name] = now
		}
	}
}

// removed forgets a cluster.
func (c *clients) removed(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.clusters, name)
}

// subscribe notes which endpoints the client wants. In the incremental variant the
// names are added to those before.
func (c *clients) subscribe(s *client, r request) {
	before, now := s.lacks, time.Now()
	if !s.incremental {
		s.lacks = make(lacks, len(r.names))
	}
	for _, name := range r.names {
		since, asked := before[name]
		if !asked {
			since = now
		}
		s.lacks[name] = since
	}
	for _, name := range r.dropped {
		delete(s.lacks, name)
	}
}

// response notes what is about to be sent.
func (c *clients) response(s *client, typeURL string, r response) {
	defer c.turn(len(r.names))()
	c.mu.Lock()
	defer c.mu.Unlock()
	s.sent[typeURL] = r
	if typeURL != resourcev3.EndpointType {
		return
	}
	for _, name := range r.names {
		if since, asked := s.lacks[name]; asked && since.IsZero() {
			s.lacks[name] = r.at
		}
	}
}

// answer counts an ACK or a NACK for each cluster that was in the response.
func (c *clients) answer(s *client, typeURL, nonce string, ack bool) {
	sent := s.sent[typeURL]
	if sent.nonce != nonce {
		return // of a response before the last one
	}
	for _, name := range sent.names {
		t := c.clusters[name]
		if t == nil {
			continue
		}
		if !ack {
			t.nacks[short(typeURL)]++
			continue
		}
		t.acks[short(typeURL)]++
		_, asked := s.lacks[name]
		if asked && typeURL == resourcev3.EndpointType && !t.changed.After(sent.at) {
			s.lacks[name] = time.Time{}
		}
	}
}

// lag returns how many clients have asked for the endpoints of the cluster, and how
// long that client has been behind which has been so for the longest. With endpoints that
// come from elsewhere no client is behind.
func (c *clients) lag(name string, now time.Time) (subscribers int, lag time.Duration) {
	for s := range c.streams {
		since, asked := s.lacks[name]
		if !asked {
			continue
		}
		subscribers++
		if !since.IsZero() && c.clusters[name].endpoints {
			lag = max(lag, now.Sub(since))
		}
	}
	return subscribers, lag
}

// nameOf returns the name in an encoded listener, cluster or ClusterLoadAssignment:
// the first field of each. The rest, which may be long, is not decoded.
func nameOf(resource []byte) string {
	number, kind, n := protowire.ConsumeTag(resource)
	if n < 0 || number != 1 || kind != protowire.BytesType {
		return ""
	}
	name, n := protowire.ConsumeBytes(resource[n:])
	if n < 0 {
		return ""
	}
	return string(name)
}
