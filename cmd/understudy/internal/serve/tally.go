package serve

import (
	"time"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/encoding/protowire"
)

type tally struct {
	endpoints bool      // the endpoints are served here, not by another server
	changed   time.Time // when the cluster's endpoints, or the value of endpoints, last changed
	// The number of ACKs and NACKs by short type name, such as "Cluster".
	acks, nacks map[string]int
}

// lacks has the clusters whose endpoints a client requests. The value is the time since when the
// client lacks the newest endpoints, or zero if it has accepted them.
type lacks map[string]time.Time

type response struct {
	nonce, version string
	names          []string
	at             time.Time
}

// changed records that a cluster is about to change. endpoints means that this server will serve
// the cluster's endpoints. If it has not served them so far, the lag of all clients begins now.
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

func (c *clients) removed(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.clusters, name)
}

// subscribe records the clusters whose endpoints a client requests. In the incremental variant, the
// names are added to the earlier ones.
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

func (c *clients) answer(s *client, typeURL, nonce string, ack bool) {
	sent := s.sent[typeURL]
	if sent.nonce != nonce {
		return
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

// lag returns the number of clients that request the cluster's endpoints, and the longest time that
// one of them has lacked the newest ones. No client lags if the endpoints come from another server.
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

// nameOf returns the name in an encoded listener, cluster or ClusterLoadAssignment without decoding
// the rest. In each of these, the name is the first field.
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
