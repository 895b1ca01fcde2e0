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

// control is a management server. It serves the cluster of the channel under test, plus a few whose
// endpoints never change.
type control struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	address   string
	network   *Network
	log       *Log
	aggregate bool

	mu      sync.Mutex
	server  *grpc.Server
	truth   EndpointSet
	version int
	nonces  int
	changed chan struct{}

	hangs        bool
	sendsInvalid bool
	code         codes.Code // if it's not OK, streams end immediately with this status
}

func newControl(network *Network, log *Log, address string, aggregate bool, truth EndpointSet) *control {
	c := &control{address: address, network: network, log: log, aggregate: aggregate, truth: truth, version: 1, changed: make(chan struct{})}
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

func (c *control) publish(truth EndpointSet) {
	c.set(func(c *control) { c.truth = truth; c.version++ })
}

type controlStream = discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer

type typeState struct {
	url            string
	names          []string
	sentVersion    int    // 0 if nothing has been sent, or if the client has asked for a new name since
	invalidNonce   string // of an invalid response that the client hasn't rejected yet
	invalidVersion int
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
	types := []*typeState{{url: clustersURL}, {url: endpointsURL}}
	for {
		changed, err := c.respond(stream, types)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case r := <-requests:
			for _, t := range types {
				if t.url == r.GetTypeUrl() {
					c.handleRequest(t, r)
				}
			}
		}
	}
}

func (c *control) respond(stream controlStream, types []*typeState) (<-chan struct{}, error) {
	c.mu.Lock()
	changed, hangs, code := c.changed, c.hangs, c.code
	c.mu.Unlock()
	if code != codes.OK {
		return changed, status.Error(code, "error set by the simulator")
	}
	for _, t := range types {
		if hangs {
			break
		}
		if err := c.send(stream, t); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// send sends the requested resources of one type, unless the client has the current version.
func (c *control) send(stream controlStream, t *typeState) error {
	c.mu.Lock()
	version, truth, invalid := c.version, c.truth, c.sendsInvalid
	c.nonces++
	nonce := "n" + strconv.Itoa(c.nonces)
	c.mu.Unlock()
	if len(t.names) == 0 || t.sentVersion == version {
		return nil
	}
	t.sentVersion, t.invalidNonce = version, ""
	response := &discoveryv3.DiscoveryResponse{TypeUrl: t.url, VersionInfo: strconv.Itoa(version), Nonce: nonce}
	for _, name := range t.names {
		resource := c.resource(t.url, name, truth, invalid)
		if resource == nil {
			continue
		}
		packed, err := anypb.New(resource)
		if err != nil {
			return err
		}
		response.Resources = append(response.Resources, packed)
		if invalid && t.url == endpointsURL && c.isUnderTest(name) {
			t.invalidNonce, t.invalidVersion = nonce, version
		}
	}
	return stream.Send(response)
}

func (c *control) isUnderTest(name string) bool {
	return !c.aggregate && name == cluster || c.aggregate && name == memberName(0)
}

func (c *control) resource(url, name string, truth EndpointSet, invalid bool) proto.Message {
	if url == clustersURL {
		for _, found := range clusters(truth, false) {
			if found.GetName() == name {
				return found
			}
		}
		return nil
	}
	content := EndpointSet{{{Zone: "n", Weight: 1, Endpoints: []Endpoint{{Address: deadAddress, Weight: 1}}}}}
	switch all := members(truth); {
	case !c.aggregate && name == cluster:
		content = truth
	case c.aggregate && strings.HasPrefix(name, cluster):
		i := 0
		for i < len(all) && memberName(i) != name {
			i++
		}
		if i == len(all) {
			return nil
		}
		content = all[i]
	}
	found := content.Cluster(name)
	if invalid && c.isUnderTest(name) {
		found.Endpoints = append(EndpointSet{{{Zone: "gap", Weight: 1, Endpoints: []Endpoint{{Address: deadAddress, Weight: 1}}}}}.Cluster(name).GetEndpoints(), found.GetEndpoints()...)
		found.Endpoints[0].Priority = 9
	}
	return found
}

func (c *control) handleRequest(t *typeState, r *discoveryv3.DiscoveryRequest) {
	for _, name := range r.GetResourceNames() {
		if !slices.Contains(t.names, name) {
			t.sentVersion = 0 // only requests with a new name get a response
		}
	}
	t.names = r.GetResourceNames()
	if t.invalidNonce == "" || t.invalidNonce != r.GetResponseNonce() {
		return
	}
	t.invalidNonce = ""
	if r.GetErrorDetail() == nil {
		c.log.Break(ruleNames, "the client did not reject the invalid version %d", t.invalidVersion)
	}
}
