package adsclient

import (
	"errors"
	"fmt"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/understudy-lb/understudy/internal/ads"
)

// wrapperURL is the type in which a server may wrap a resource of any type.
const wrapperURL = "type.googleapis.com/envoy.service.discovery.v3.Resource"

// received takes one response. It returns when the watchers know of it, so that
// the next one is not read before.
func (c *client) received(response *discoveryv3.DiscoveryResponse) {
	if response.GetTypeUrl() != EndpointsURL {
		// There is nothing to reject: nothing of that type was asked for.
		c.serial.Do(func() { c.ignore(response.GetTypeUrl()) })
		return
	}
	decoded := make(resources)
	received := make([]ads.Resource, len(response.GetResources()))
	for i, resource := range response.GetResources() {
		var cla *endpointv3.ClusterLoadAssignment
		if received[i], cla = c.decode(resource); received[i].Err == nil {
			decoded[cla.GetClusterName()] = cla
		}
	}
	c.serial.Do(func() {
		if !c.subs.Answered() {
			c.recorder.connected()
			c.lost.Store(nil)
		}
		a := c.subs.Received(response.GetVersionInfo(), response.GetNonce(), received)
		c.recorder.received()
		if a.Send != nil && a.Send.Reject != "" {
			c.logRejected(response.GetVersionInfo(), a.Send.Reject)
			c.recorder.rejected()
		}
		c.do(a, decoded, c.watchers)
	})
}

// ignore takes note of a response of another type, and logs it once, however many a
// server sends.
func (c *client) ignore(typeURL string) {
	c.recorder.ignored()
	if typeURL != c.ignored {
		c.ignored = typeURL
		logger.Warningf("eds: ignored a response of type %q from %s", typeURL, c.server.URI)
	}
}

// logRejected logs a reason once, however often a server sends the same.
func (c *client) logRejected(version, reason string) {
	if reason == c.rejected {
		return
	}
	c.rejected = reason
	logger.Warningf("eds: rejected version %q from %s: %s", version, c.server.URI, reason)
}

// decode reads one resource of a response, as far as it can be read.
func (c *client) decode(packed *anypb.Any) (ads.Resource, *endpointv3.ClusterLoadAssignment) {
	wrapped := ""
	if packed.GetTypeUrl() == wrapperURL {
		var wrapper discoveryv3.Resource
		if err := proto.Unmarshal(packed.GetValue(), &wrapper); err != nil {
			return ads.Resource{Err: fmt.Errorf("not a Resource: %w", err)}, nil
		}
		packed, wrapped = wrapper.GetResource(), wrapper.GetName()
	}
	if packed.GetTypeUrl() != EndpointsURL {
		return ads.Resource{Name: wrapped, Err: fmt.Errorf("type %q, want %q", packed.GetTypeUrl(), EndpointsURL)}, nil
	}
	cla, err := unmarshal(packed.GetValue())
	if err != nil {
		return ads.Resource{Name: wrapped, Err: err}, nil
	}
	r := ads.Resource{Name: cla.GetClusterName(), Body: packed.GetValue()}
	if r.Name == "" {
		r.Err = errors.New("cluster_name is empty")
	} else {
		r.Err = c.server.Validate(cla)
	}
	return r, cla
}

func unmarshal(body []byte) (*endpointv3.ClusterLoadAssignment, error) {
	cla := new(endpointv3.ClusterLoadAssignment)
	if err := proto.Unmarshal(body, cla); err != nil {
		return nil, fmt.Errorf("not a ClusterLoadAssignment: %w", err)
	}
	return cla, nil
}
