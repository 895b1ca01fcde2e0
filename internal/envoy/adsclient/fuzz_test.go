package adsclient

import (
	"strings"
	"testing"
	"unicode/utf8"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/core/ads"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// FuzzResponse checks that the client replies to each response with an ACK or a NACK. Resources
// that are delivered to watchers must be valid.
func FuzzResponse(f *testing.F) {
	for _, r := range []*discoveryv3.DiscoveryResponse{
		response("1", adstest.Any(adstest.Cluster("a", "10.0.0.1:1")), adstest.Any(weightless("a"))),
		response("2", adstest.Any(&discoveryv3.Resource{Name: "a", Resource: adstest.Any(adstest.Cluster("a"))})),
	} {
		bytes, err := proto.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(bytes)
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		var r discoveryv3.DiscoveryResponse
		if proto.Unmarshal(bytes, &r) != nil {
			return
		}
		endpoints := &topic{Type: Endpoints, client: &client{server: Server{Read: parse}}}
		subs := ads.New()
		subs.Watch("a", false)
		subs.Opened()
		var received []ads.Resource
		for _, packed := range r.GetResources() {
			received = append(received, endpoints.decode(packed))
		}
		a := subs.Received(r.GetVersionInfo(), r.GetNonce(), received)
		if a.Send == nil || a.Send.Nonce != r.GetNonce() {
			t.Fatalf("replied with %+v", a.Send)
		}
		if text := a.Send.Reject; len(text) > 20_000 || strings.ContainsAny(text, "\n\r\x00\x1b") || !utf8.ValidString(text) {
			t.Errorf("the reason is not one line of a limited length: %.1000q", text)
		}
		for _, d := range a.Deliver {
			m, err := endpoints.unmarshal(d.Body)
			if err == nil {
				err = checkUsable(m.(*endpointv3.ClusterLoadAssignment))
			}
			if err != nil {
				t.Fatalf("delivered an unusable resource: %v", err)
			}
		}
	})
}

func checkUsable(cluster *endpointv3.ClusterLoadAssignment) error {
	answer, _, err := messages.Read(cluster)
	if err == nil {
		_, err = new(topology.Translator).Translate(&answer)
	}
	return err
}
