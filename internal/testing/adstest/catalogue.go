package adstest

import (
	"fmt"
	"sync"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
)

const ClustersURL = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

type Catalogue struct {
	mu        sync.Mutex
	resources map[string]proto.Message
	changed   chan struct{}
}

func NewCatalogue(resources ...proto.Message) *Catalogue {
	c := &Catalogue{resources: make(map[string]proto.Message), changed: make(chan struct{})}
	c.Set(resources...)
	return c
}

func (c *Catalogue) Set(resources ...proto.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range resources {
		switch r := r.(type) {
		case *clusterv3.Cluster:
			c.resources[ClustersURL+" "+r.GetName()] = r
		case *endpointv3.ClusterLoadAssignment:
			c.resources[EndpointsURL+" "+r.GetClusterName()] = r
		}
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// Serve is a Script. It sends the resources that the client asks for, and sends them again when
// they change.
func (c *Catalogue) Serve(s *Stream) error {
	requestedNames := make(map[string][]string)
	sent := make(map[string]proto.Message)
	requests := make(chan *discoveryv3.DiscoveryRequest)
	failed := make(chan error, 1)
	go func() {
		for {
			r, err := s.Recv()
			if err != nil {
				failed <- err
				return
			}
			select {
			case requests <- r:
			case <-s.Context().Done():
				return
			}
		}
	}()
	for nonce := 1; ; {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		for url, names := range requestedNames {
			if err := c.send(s, url, names, sent, &nonce); err != nil {
				return err
			}
		}
		select {
		case r := <-requests:
			requestedNames[r.GetTypeUrl()] = r.GetResourceNames()
		case <-changed:
		case err := <-failed:
			return err
		case <-s.Context().Done():
			return s.Context().Err()
		}
	}
}

func (c *Catalogue) send(s *Stream, url string, names []string, sent map[string]proto.Message, nonce *int) error {
	response := &discoveryv3.DiscoveryResponse{TypeUrl: url, VersionInfo: fmt.Sprint(*nonce), Nonce: fmt.Sprint(*nonce)}
	c.mu.Lock()
	for _, name := range names {
		key := url + " " + name
		if r := c.resources[key]; r != nil && sent[key] != r {
			sent[key] = r
			response.Resources = append(response.Resources, Any(r))
		}
	}
	c.mu.Unlock()
	if len(response.GetResources()) == 0 {
		return nil
	}
	*nonce++
	return s.Send(response)
}

func EDS(name string) *clusterv3.Cluster {
	ads := &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}}
	return &clusterv3.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ads},
	}
}

func Aggregate(name string, children ...string) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: name,
		ClusterDiscoveryType: &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{
			Name:        "envoy.clusters.aggregate",
			TypedConfig: Any(&aggregatev3.ClusterConfig{Clusters: children}),
		}},
	}
}

func LogicalDNS(name, host string, port uint32) *clusterv3.Cluster {
	c := Cluster(name, "10.0.0.1:1")
	c.GetEndpoints()[0].GetLbEndpoints()[0].GetEndpoint().Address = SocketAddress(host, port)
	return &clusterv3.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_LOGICAL_DNS},
		LoadAssignment:       c,
	}
}
