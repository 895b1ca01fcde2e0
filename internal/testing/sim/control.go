package sim

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

const (
	endpointsURL = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	clustersURL  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
)

const (
	controlAddress = "10.9.0.1:18000"
	secondAddress  = "10.9.0.2:18000"
)

// control is a management server. It serves the cluster of the channel under test, and a second
// cluster that never changes.
type control struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	address string
	network *Network
	log     *Log
	list    *list // the clusters of the aggregate; nil if the cluster is no aggregate

	mu      sync.Mutex
	server  *grpc.Server // nil while the server is down
	truth   Truth
	version int
	nonces  int
	changed chan struct{} // closed at each change

	hung bool       // streams are accepted and get no answers
	bad  bool       // clients must refuse the responses
	code codes.Code // if not OK, streams end at once with this status
}

// newControl returns a running server. If list is not nil, its cluster is an aggregate.
func newControl(network *Network, log *Log, address string, list *list, truth Truth) *control {
	c := &control{address: address, network: network, log: log, list: list, truth: truth, version: 1, changed: make(chan struct{})}
	c.up()
	return c
}

func (c *control) up() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server != nil {
		return
	}
	listener, err := c.network.Listen(c.address)
	if err != nil {
		panic(err)
	}
	c.server = grpc.NewServer(grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}))
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(c.server, c)
	server := c.server
	go func() { _ = server.Serve(listener) }()
}

func (c *control) down() {
	c.mu.Lock()
	server := c.server
	c.server = nil
	c.mu.Unlock()
	if server != nil {
		c.network.Reset(c.address)
		server.Stop()
	}
}

func (c *control) set(change func(*control)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *control) publish(truth Truth) {
	c.set(func(c *control) { c.truth = truth; c.version++ })
}

type controlStream = discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer

// talk is the state of one resource type on one stream.
type talk struct {
	url   string
	names []string
	sent  int    // the last version that was sent; 0 after a new name
	bad   string // the nonce of a response that the client must still refuse
	worst int
}

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
	talks := []*talk{{url: clustersURL}, {url: endpointsURL}}
	for {
		changed, err := c.answer(stream, talks)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case r := <-requests:
			for _, t := range talks {
				if t.url == r.GetTypeUrl() {
					c.hear(t, r)
				}
			}
		}
	}
}

func (c *control) answer(stream controlStream, talks []*talk) (<-chan struct{}, error) {
	c.mu.Lock()
	changed, hung, code := c.changed, c.hung, c.code
	c.mu.Unlock()
	if code != codes.OK {
		return changed, status.Error(code, "error set by the simulator")
	}
	for _, t := range talks {
		if hung {
			break
		}
		if err := c.send(stream, t); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// send sends the resources of one type if they have changed.
func (c *control) send(stream controlStream, t *talk) error {
	c.mu.Lock()
	version, truth, bad := c.version, c.truth, c.bad
	c.nonces++
	nonce := "n" + strconv.Itoa(c.nonces)
	c.mu.Unlock()
	if len(t.names) == 0 || t.sent == version {
		return nil
	}
	t.sent, t.bad = version, ""
	response := &discoveryv3.DiscoveryResponse{TypeUrl: t.url, VersionInfo: strconv.Itoa(version), Nonce: nonce}
	for _, name := range t.names {
		resource := c.resource(t.url, name, truth, bad)
		if resource == nil {
			continue
		}
		packed, err := anypb.New(resource)
		if err != nil {
			return err
		}
		response.Resources = append(response.Resources, packed)
		if bad && t.url == endpointsURL && c.own(name) {
			t.bad, t.worst = nonce, version
		}
	}
	return stream.Send(response)
}

func (c *control) own(name string) bool {
	return c.list == nil && name == cluster || c.list != nil && name == memberName(0)
}

// resource returns the resource with this name, or nil. If bad is set, its priorities have a gap.
func (c *control) resource(url, name string, truth Truth, bad bool) proto.Message {
	if url == clustersURL {
		for _, found := range c.list.clusters(truth, false) {
			if found.GetName() == name {
				return found
			}
		}
		return nil
	}
	own := Truth{{{Zone: "n", Weight: 1, Endpoints: []Endpoint{{Address: nobody, Weight: 1}}}}}
	switch all := members(truth); {
	case c.list == nil && name == cluster:
		own = truth
	case c.list != nil && strings.HasPrefix(name, cluster):
		i := 0
		for i < len(all) && memberName(i) != name {
			i++
		}
		if i == len(all) {
			return nil
		}
		own = all[i]
	}
	found := own.Cluster(name)
	if bad && c.own(name) {
		found.Endpoints = append(Truth{{{Zone: "gap", Weight: 1, Endpoints: []Endpoint{{Address: nobody, Weight: 1}}}}}.Cluster(name).GetEndpoints(), found.GetEndpoints()...)
		found.Endpoints[0].Priority = 9
	}
	return found
}

func (c *control) hear(t *talk, r *discoveryv3.DiscoveryRequest) {
	for _, name := range r.GetResourceNames() {
		if !slices.Contains(t.names, name) {
			t.sent = 0 // only a new name gets a response
		}
	}
	t.names = r.GetResourceNames()
	if t.bad == "" || t.bad != r.GetResponseNonce() {
		return
	}
	t.bad = ""
	if r.GetErrorDetail() == nil {
		c.log.Break(ruleNames, "the client did not reject the invalid version %d", t.worst)
	}
}
