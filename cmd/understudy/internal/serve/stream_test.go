package serve

import (
	"log/slog"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// conversation is a stream without a network, to a server that has the cluster a.
type conversation struct {
	grpc.ServerStream
	t         *testing.T
	stream    *clientStream
	resources *resources
	responses []*discoveryv3.DiscoveryResponse
}

func newConversation(t *testing.T) *conversation {
	c := &conversation{t: t, stream: newTestClients(slog.New(slog.DiscardHandler)).add(t.Context(), nil), resources: newResources(RoundRobin)}
	c.serve("a")
	return c
}

func (c *conversation) SendMsg(m any) error {
	c.responses = append(c.responses, m.(*discoveryv3.DiscoveryResponse))
	return nil
}

func (c *conversation) serve(name string) {
	c.t.Helper()
	must(c.t, c.resources.set(changes{updated: []string{name}}, map[string]servedCluster{name: {cluster: newStatic(adstest.Cluster(name, "10.0.0.1:1"))}}))
}

func (c *conversation) request(r *discoveryv3.DiscoveryRequest) {
	c.t.Helper()
	must(c.t, c.stream.handle(r, c.resources.current.Load()))
}

// respond returns the responses that are due.
func (c *conversation) respond() []*discoveryv3.DiscoveryResponse {
	c.t.Helper()
	c.responses = nil
	must(c.t, c.stream.respond(c.resources.current.Load(), &grpc.GenericServerStream[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]{ServerStream: c}))
	return c.responses
}

// A client may change its mind before it has the first response. A request without names then means
// that it wants nothing, and not that it wants everything.
func TestClientUnsubscribesEarly(t *testing.T) {
	for _, typeURL := range []string{clusterType, endpointType, listenerType} {
		c := newConversation(t)
		c.request(newRequest(typeURL, "a"))
		c.request(newRequest(typeURL))
		c.request(newRequest(typeURL))
		if got := c.respond(); len(got) != 1 || len(got[0].GetResources()) != 0 {
			t.Errorf("%s: after it has been withdrawn, the first request is answered by %v", typeURL, got)
		}

		c = newConversation(t)
		c.request(newRequest(typeURL, "a"))
		first := c.respond()[0]
		c.request(newRequest(typeURL)) // crosses the response
		c.request(newACK(first))
		c.serve("b")
		if got := c.respond(); len(got) != 0 {
			t.Errorf("%s: a client that wants nothing any longer receives %v", typeURL, got)
		}
	}
}

// A client lags until it accepts what it was sent, or until it no longer wants it.
func TestLag(t *testing.T) {
	c := newConversation(t)
	lags := func() bool { return c.stream.clients.lag() > 0 }
	reject := func(typeURL string) (nonce string) {
		t.Helper()
		c.request(newRequest(typeURL, "a"))
		r := newACK(c.respond()[0], "a")
		r.ErrorDetail = &rpcstatus.Status{Message: "no"}
		c.request(r)
		if !lags() {
			t.Errorf("a client that has rejected its %s does not lag", typeURL)
		}
		return r.GetResponseNonce()
	}
	unsubscribe := func(typeURL, nonce string) {
		c.request(&discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResponseNonce: nonce})
		c.respond()
	}
	cluster, listener := reject(clusterType), reject(listenerType)
	unsubscribe(clusterType, cluster)
	if !lags() {
		t.Error("a client that has rejected its listener does not lag")
	}
	unsubscribe(listenerType, listener)
	if lags() {
		t.Error("a client lags behind what it no longer wants")
	}
	c.request(newRequest(endpointType, "none"))
	if c.respond(); lags() {
		t.Error("a client lags behind endpoints that do not exist")
	}
}

// A topic is compared with what is served only if one of the two has changed: otherwise, each small
// request of a client would cost as much as its largest one.
func TestUnchangedTopicsAreSkipped(t *testing.T) {
	c := newConversation(t)
	names := makeNames("n", 200)
	for _, name := range names {
		c.serve(name)
	}
	c.request(newRequest(endpointType, names...))
	r := c.respond()[0]
	c.request(newACK(r, names...))
	c.respond()
	if n := testing.AllocsPerRun(10, func() { c.respond() }); n > 10 {
		t.Errorf("%v allocations for a topic that has not changed", n)
	}
	c.request(newACK(r, append(names, "a")...))
	if got := c.respond(); len(got) != 1 || len(got[0].GetResources()) != 1 {
		t.Errorf("another name is answered by %v, want its endpoints", got)
	}
	c.request(newACK(c.responses[0], "a"))
	c.serve("a")
	if got := c.respond(); len(got) != 0 {
		t.Errorf("what has not changed is sent again: %v", got)
	}
}
