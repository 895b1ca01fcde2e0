package eds

import (
	"fmt"
	"os"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/experimental/stats"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/discovery"
	_ "github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/envoy/adsclient"
	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
	"github.com/understudy-lb/understudy/internal/net/location"
	"github.com/understudy-lb/understudy/internal/net/xnet"
)

func targetMechanisms(t *discovery.Target) ([]discovery.Mechanism, error) {
	uris, cluster, err := parseTarget(t.Target)
	if err != nil {
		return nil, err
	}
	s := source{
		uris:             uris,
		cluster:          cluster,
		options:          discovery.OwnOptions(t, options{}),
		network:          discovery.OwnOptions(t, adsclient.Options{}).Network,
		recorder:         t.BuildOptions.MetricsRecorder,
		reachabilityOnly: t.Choice("fallbackOnReachabilityOnly", "true", "false") == "true",
		Learned:          new(location.Learned),
	}
	mechanism := discovery.Mechanism{Source: s, Authority: xnet.EncodeAuthority(cluster)}
	if t.Choice("cds", "true", "false") == "true" {
		t.Refresh(discovery.Refresh{}) // clusters with DNS names read these parameters later
		mechanism.Source = clusterSource{s, t}
	}
	return []discovery.Mechanism{mechanism}, nil
}

type source struct {
	uris     []string // if nil, we use the servers in the bootstrap
	cluster  string
	options  options
	network  *adsclient.Network
	recorder stats.MetricsRecorder

	reachabilityOnly bool // use the next server even if we have endpoints (gRFC A95, not A71)

	*location.Learned // the node's locality, set by servers
}

func (s source) Start(r *discovery.Receiver) (discovery.Started, error) {
	needs := adsclient.Needs{Endpoints: []string{s.cluster}}
	w := &watch{
		source:     s,
		receiver:   r,
		needs:      func(map[string]adsclient.State) adsclient.Needs { return needs },
		onSnapshot: func(n adsclient.Snapshot) { sendState(r, n.Endpoints[s.cluster]) },
	}
	return w.open()
}

func (s source) servers() ([]adsclient.Server, error) {
	boot, err := loadBootstrap()
	if err != nil {
		return nil, err
	}
	node := s.options.node
	if node == nil {
		node = boot.nodeOrDefault()
	}
	s.Set(location.Location{Region: node.GetLocality().GetRegion(), Zone: node.GetLocality().GetZone()})
	uris := s.uris
	if uris == nil {
		for _, server := range boot.Servers {
			uris = append(uris, server.URI)
		}
	}
	if uris == nil {
		return nil, fmt.Errorf("the target names no server, and neither does an xDS bootstrap (%s); want eds://xds.example.com:443/cluster", bootstrapFileVar)
	}
	var servers []adsclient.Server
	for _, uri := range uris {
		c, err := s.options.credentialsFor(uri, boot)
		if err != nil {
			return nil, err
		}
		servers = append(servers, adsclient.Server{
			URI:         uri,
			Credentials: c,
			Node:        node,
			MaxResponse: maxResponse,
			Read:        readResource,
			Network:     s.network,
		})
	}
	return servers, nil
}

// readResource converts a resource to a *discovery.Answer or *cds.Cluster. All channels share the
// result.
func readResource(m proto.Message) (any, error) {
	if cluster, ok := m.(*clusterv3.Cluster); ok {
		return cds.Read(cluster)
	}
	answer, _, err := messages.Read(m.(*endpointv3.ClusterLoadAssignment))
	return &answer, err
}

// Check ignores errors in a bootstrap file unless read is set, because they may go away. For
// example, the file may be incomplete, or its volume may not be mounted yet.
func (s source) Check(read bool) error {
	servers, err := s.servers()
	if !read && os.Getenv(bootstrapFileVar) != "" {
		return nil
	}
	for _, server := range servers {
		if files, ok := server.Credentials.(fileCredentials); ok && read && err == nil {
			_, err = files.files.load()
		}
	}
	return err
}
