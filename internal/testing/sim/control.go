package sim

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
)

// endpointsURL is the type of what the management server has.
const endpointsURL = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

// controlAddress is where the management server of a world listens.
const controlAddress = "10.9.0.1:18000"

// control is the management server of a world. It has the world's cluster, and a
// neighbour that never changes.
type control struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	network *Network
	log     *Log

	mu      sync.Mutex
	server  *grpc.Server // nil while it is down
	truth   Truth
	version int
	nonces  int
	changed chan struct{} // closed when something below or above changes

	hung bool       // streams are taken, and not answered
	bad  bool       // what is sent must be refused
	code codes.Code // how streams end at once; OK for not at all
}

func newControl(network *Network, log *Log, truth Truth) *control {
	c := &control{network: network, log: log, truth: truth, version: 1, changed: make(chan struct{})}
	c.up()
	return c
}

func (c *control) up() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server != nil {
		return
	}
	listener, err := c.network.Listen(controlAddress)
	if err != nil {
		panic(err) // nobody else listens there
	}
	c.server = grpc.NewServer(grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}))
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(c.server, c)
	server := c.server
	go func() { _ = server.Serve(listener) }() // it ends with Stop
}

func (c *control) down() {
	c.mu.Lock()
	server := c.server
	c.server = nil
	c.mu.Unlock()
	if server != nil {
		c.network.Reset(controlAddress)
		server.Stop()
	}
}

// set changes the server, and lets its streams see to that.
func (c *control) set(change func(*control)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
	close(c.changed)
	c.changed = make(chan struct{})
}

// publish makes truth the next version.
func (c *control) publish(truth Truth) {
	c.set(func(c *control) { c.truth = truth; c.version++ })
}

type controlStream = discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer

// talk is what was said on one stream.
type talk struct {
	names []string // that are asked for
	sent  int      // the version that was sent last; 0: some name was never answered
	bad   string   // the nonce of a response that is to be refused, until it was answered
}

// StreamAggregatedResources serves one client.
func (c *control) StreamAggregatedResources(stream controlStream) error {
	requests := make(chan *discoveryv3.DiscoveryRequest)
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	go func() {
		defer cancel()
		for {
			r, err := stream.Recv()
			if err != nil {
				return
			}
			select {
			case requests <- r:
			case <-ctx.Done():
				return
			}
		}
	}()
	var t talk
	for {
		changed, err := c.answer(stream, &t)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case r := <-requests:
			c.hear(&t, r)
		}
	}
}

// answer sends what is to be sent.
func (c *control) answer(stream controlStream, t *talk) (<-chan struct{}, error) {
	c.mu.Lock()
	changed, version, truth, hung, bad, code := c.changed, c.version, c.truth, c.hung, c.bad, c.code
	c.nonces++
	nonce := "n" + strconv.Itoa(c.nonces)
	c.mu.Unlock()
	switch {
	case code != codes.OK:
		return changed, status.Error(code, "the management server was told to end streams so")
	case hung || len(t.names) == 0 || t.sent == version:
		return changed, nil
	}
	t.sent, t.bad = version, ""
	response := &discoveryv3.DiscoveryResponse{TypeUrl: endpointsURL, VersionInfo: strconv.Itoa(version), Nonce: nonce}
	for _, name := range t.names {
		cla := truth.Cluster(name)
		switch {
		case name != cluster:
			cla = Truth{{{Zone: "n", Weight: 1, Endpoints: []Endpoint{{Address: nobody, Weight: 1}}}}}.Cluster(name)
		case bad:
			cla.Endpoints[0].Priority = 9 // a gap
			t.bad = nonce
		}
		packed, err := anypb.New(cla)
		if err != nil {
			return changed, err
		}
		response.Resources = append(response.Resources, packed)
	}
	return changed, stream.Send(response)
}

// hear takes note of a request.
func (c *control) hear(t *talk, r *discoveryv3.DiscoveryRequest) {
	for _, name := range r.GetResourceNames() {
		if !slices.Contains(t.names, name) {
			t.sent = 0 // a server answers what is new, and nothing else
		}
	}
	t.names = r.GetResourceNames()
	if t.bad == "" || t.bad != r.GetResponseNonce() {
		return
	}
	t.bad = ""
	if r.GetErrorDetail() == nil {
		c.log.Break(ruleNames, "version %d was to be refused, and the answer to it gives no reason", t.sent)
	}
}
