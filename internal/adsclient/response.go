package adsclient

import (
	"errors"
	"fmt"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/understudy-lb/understudy/internal/core/ads"
)

// wrapperURL is the type of the message in which a server may wrap any resource.
const wrapperURL = "type.googleapis.com/envoy.service.discovery.v3.Resource"

// received applies a response and waits until the watchers have been notified.
func (c *client) received(response *discoveryv3.DiscoveryResponse) {
	t := c.topic(response.GetTypeUrl())
	if t == nil {
		// An unknown type was never requested, so the response is not rejected.
		c.serial.Do(func() {
			c.believe()
			c.ignore(response.GetTypeUrl())
		})
		return
	}
	decoded := make(map[string]*Resource)
	received := make([]ads.Resource, len(response.GetResources()))
	for i, resource := range response.GetResources() {
		var read *Resource
		if received[i], read = t.decode(resource); received[i].Err == nil {
			decoded[received[i].Name] = read
		}
	}
	c.serial.Do(func() {
		c.believe()
		if c.lost != nil {
			c.lost.over.Store(true)
		}
		if !c.answered {
			c.begin()
		}
		for _, other := range c.topics {
			other.speaks()
			other.subs.Heard()
		}
		a := t.subs.Received(response.GetVersionInfo(), response.GetNonce(), received)
		c.count(responsesMetric, 1)
		if a.Send != nil && a.Send.Reject != "" {
			t.logRejected(response.GetVersionInfo(), a.Send.Reject)
			c.count(rejectedMetric, 1)
		}
		for _, d := range a.Deliver {
			t.versions[d.Name] = response.GetVersionInfo()
		}
		if t.Type == Clusters {
			c.news = time.Now()
		}
		t.do(a, decoded, t.watchers)
		c.reached()
	})
}

// begin handles the first response on the current stream. If it ends an outage, the timeouts of
// missing resources start again.
func (c *client) begin() {
	c.answered = true
	c.count(connectedMetric, 1)
	c.ended.Store(nil)
	if c.lost == nil {
		return
	}
	for _, t := range c.topics {
		t.do(t.subs.Await(), nil, t.watchers)
	}
}

// ignore counts a response of an unknown type. It logs the type unless the last one was the same.
func (c *client) ignore(typeURL string) {
	c.count(ignoredMetric, 1)
	if typeURL != c.ignored {
		c.ignored = typeURL
		logger.Warningf("eds: ignored a response of type %q from %s", typeURL, c.server.URI)
	}
}

func (t *topic) decode(packed *anypb.Any) (ads.Resource, *Resource) {
	wrapped := ""
	if packed.GetTypeUrl() == wrapperURL {
		var wrapper discoveryv3.Resource
		if err := proto.Unmarshal(packed.GetValue(), &wrapper); err != nil {
			return ads.Resource{Err: fmt.Errorf("not a Resource: %w", err)}, nil
		}
		packed, wrapped = wrapper.GetResource(), wrapper.GetName()
		if wrapper.GetTtl() != nil {
			t.ttl.Do(func() {
				logger.Warningf("eds: %s gives resources a time to live, which has no effect: the last good one stays in use", t.client.server.URI)
			})
		}
	}
	if packed.GetTypeUrl() != t.url {
		return ads.Resource{Name: wrapped, Err: fmt.Errorf("type %q, want %q", packed.GetTypeUrl(), t.url)}, nil
	}
	m, err := t.unmarshal(packed.GetValue())
	if err != nil {
		return ads.Resource{Name: wrapped, Err: err}, nil
	}
	r := ads.Resource{Name: t.nameOf(m), Body: packed.GetValue()}
	if r.Name == "" {
		r.Err = errors.New(t.field + " is empty")
		return r, nil
	}
	read, err := t.client.server.Read(m)
	r.Err = err
	return r, &Resource{read}
}
