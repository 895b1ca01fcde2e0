package adsclient

import (
	"errors"
	"fmt"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/understudy-lb/understudy/internal/core/ads"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

const wrapperURL = "type.googleapis.com/envoy.service.discovery.v3.Resource" // servers may wrap any resource in one of these

func (c *client) received(s *stream, response *discoveryv3.DiscoveryResponse, pingHeaders []string) {
	// If s is the second stream, this response makes it the current one. Types that we never
	// requested are ignored rather than rejected.
	t := c.topic(response.GetTypeUrl())
	var resources []ads.Resource
	if t != nil {
		for _, packed := range response.GetResources() {
			resources = append(resources, t.decode(packed))
		}
	}
	c.serial.Do(func() {
		if s.ctx.Err() != nil {
			return // replaced or closed while we were decoding
		}
		if s == c.second.stream && t != nil && s.requested[t.index] != nil {
			c.takeOver(s)
		}
		if s == c.current {
			c.second.lastResponse = time.Now()
			c.cancelSecond()
		}
		if t == nil || s != c.current {
			c.count(responsesMetric, 1)
			if typeURL := response.GetTypeUrl(); typeURL != c.ignoredType {
				c.ignoredType = typeURL
				logger.Warningf("eds: ignored a response of type %q from %s", typeURL, c.server.URI)
			}
			return
		}
		c.apply(t, response, resources, pingHeaders)
	})
}

func (c *client) apply(t *topic, response *discoveryv3.DiscoveryResponse, resources []ads.Resource, pingHeaders []string) {
	if c.outage != nil {
		c.outage.recovered.Store(true)
	}
	if !c.answered {
		c.handleFirst(pingHeaders)
	}
	for _, other := range c.topics {
		for _, silence := range other.silences {
			silence.recovered.Store(true)
		}
		other.execute(other.subs.ServerResponds())
		other.subs.OtherResponse()
	}
	a := t.subs.Received(response.GetVersionInfo(), response.GetNonce(), resources)
	c.count(responsesMetric, 1)
	if a.Send != nil && a.Send.Reject != "" {
		if t.lastRejection != a.Send.Reject {
			t.lastRejection = a.Send.Reject
			logger.Warningf("eds: rejected version %q from %s: %s", response.GetVersionInfo(), c.server.URI, printable.Text(a.Send.Reject))
		}
		c.count(rejectedMetric, 1)
	}
	if t.Type == Clusters {
		c.lastClusters = time.Now()
	}
	t.execute(a)
	c.endOutages()
}

func (c *client) handleFirst(pingHeaders []string) {
	c.answered, c.ended, c.attempts = true, time.Time{}, 0
	c.count(connectedMetric, 1)
	c.applyPingHeader(c.current, pingHeaders)
	if c.outage == nil {
		return
	}
	// There was an outage, so everything that hasn't arrived yet gets another 15 s.
	for _, t := range c.topics {
		t.execute(t.subs.RestartTimers())
	}
}

func (t *topic) decode(packed *anypb.Any) ads.Resource {
	wrapped := ""
	if packed.GetTypeUrl() == wrapperURL {
		var wrapper discoveryv3.Resource
		if err := proto.Unmarshal(packed.GetValue(), &wrapper); err != nil {
			return ads.Resource{Err: fmt.Errorf("not a Resource: %w", err)}
		}
		packed, wrapped = wrapper.GetResource(), wrapper.GetName()
		if wrapper.GetTtl() != nil {
			t.warnTTL.Do(func() {
				logger.Warningf("eds: %s gives resources a time to live, which has no effect: the last good resource stays in use", t.client.server.URI)
			})
		}
	}
	if packed.GetTypeUrl() != t.url {
		return ads.Resource{Name: wrapped, Err: fmt.Errorf("type %q, want %q", packed.GetTypeUrl(), t.url)}
	}
	m, err := t.unmarshal(packed.GetValue())
	if err != nil {
		return ads.Resource{Name: wrapped, Err: err}
	}
	name := t.nameOf(m)
	if name == "" {
		return ads.Resource{Err: errors.New(t.field + " is empty")}
	}
	parsed, err := t.client.server.Read(m)
	return ads.Resource{Name: name, Body: packed.GetValue(), Parsed: &Resource{parsed}, Err: err}
}
