package serve

import (
	"time"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/encoding/protowire"
)

type clusterStats struct {
	servesEndpoints bool      // otherwise, another server serves the endpoints
	changedAt       time.Time // when the cluster's endpoints or servesEndpoints last changed
	// acks and nacks are the numbers of ACKs and NACKs by short type name, such as "Cluster".
	acks, nacks map[string]int
}

// subscriptions has the clusters whose endpoints a client requests. The value is the time since
// which the client has not accepted the newest endpoints, or zero if it has accepted them.
type subscriptions map[string]time.Time

type response struct {
	nonce, version string
	names          []string
	sentAt         time.Time
}

// recordChange records that a cluster is about to change. servesEndpoints means that this server
// will serve the cluster's endpoints. If it has not served them so far, the lag of all clients
// begins now.
func (c *clients) recordChange(name string, servesEndpoints bool, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clusters[name] == nil {
		c.clusters[name] = &clusterStats{acks: make(map[string]int), nacks: make(map[string]int)}
	}
	t := c.clusters[name]
	isNew := servesEndpoints && !t.servesEndpoints
	t.servesEndpoints, t.changedAt = servesEndpoints, now
	for s := range c.streams {
		if since, subscribed := s.subscriptions[name]; subscribed && (isNew || since.IsZero()) {
			s.subscriptions[name] = now
		}
	}
}

func (c *clients) removeCluster(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.clusters, name)
}

// subscribe records the clusters whose endpoints a client requests. In the incremental variant, it
// adds the names to the earlier names.
func (c *clients) subscribe(s *clientStream, r request) {
	before, now := s.subscriptions, time.Now()
	if !s.incremental {
		s.subscriptions = make(subscriptions, len(r.names))
	}
	for _, name := range r.names {
		since, subscribed := before[name]
		if !subscribed {
			since = now
		}
		s.subscriptions[name] = since
	}
	for _, name := range r.unsubscribed {
		delete(s.subscriptions, name)
	}
}

func (c *clients) recordResponse(s *clientStream, typeURL string, r response) {
	defer c.waitTurn(len(r.names))()
	c.mu.Lock()
	defer c.mu.Unlock()
	s.sent[typeURL] = r
	if typeURL != resourcev3.EndpointType {
		return
	}
	for _, name := range r.names {
		if since, subscribed := s.subscriptions[name]; subscribed && since.IsZero() {
			s.subscriptions[name] = r.sentAt
		}
	}
}

func (c *clients) recordAnswer(s *clientStream, typeURL, nonce string, ack bool) {
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
			t.nacks[shortType(typeURL)]++
			continue
		}
		t.acks[shortType(typeURL)]++
		_, subscribed := s.subscriptions[name]
		if subscribed && typeURL == resourcev3.EndpointType && !t.changedAt.After(sent.sentAt) {
			s.subscriptions[name] = time.Time{}
		}
	}
}

// lag returns the number of clients that request the cluster's endpoints, and the longest time for
// which a client has not accepted the newest endpoints. The lag is 0 if the endpoints come from
// another server.
func (c *clients) lag(name string, now time.Time) (subscribers int, lag time.Duration) {
	for s := range c.streams {
		since, subscribed := s.subscriptions[name]
		if !subscribed {
			continue
		}
		subscribers++
		if !since.IsZero() && c.clusters[name].servesEndpoints {
			lag = max(lag, now.Sub(since))
		}
	}
	return subscribers, lag
}

// nameOf returns the name in an encoded listener, cluster or ClusterLoadAssignment without decoding
// the rest. In each of these messages, the name is the first field.
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
