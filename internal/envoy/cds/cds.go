// Package cds reads the fields of Envoy's v3 Cluster that define its endpoints. They're listed in
// docs/xds.md.
package cds

import (
	"fmt"
	"slices"
	"strings"

	typev3 "github.com/cncf/xds/go/xds/type/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	roundrobinv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	wrrlocalityv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
)

type Kind int

const (
	// Static clusters list their endpoints in Assignment.
	Static Kind = iota
	// StrictDNS clusters list their endpoints in Assignment too, but an endpoint with a host name
	// is replaced by one endpoint for each of the host's addresses.
	StrictDNS
	// LogicalDNS clusters have the addresses of Host (gRFC A37).
	LogicalDNS
	// EDS clusters get their endpoints over EDS, under the name in Service.
	EDS
	// Aggregate clusters have the endpoints of Children, in that order (gRFC A37).
	Aggregate
)

// Cluster is a parsed Cluster resource.
type Cluster struct {
	Name        string
	Kind        Kind
	Assignment  *endpointv3.ClusterLoadAssignment // its cluster name defaults to Name
	Answer      discovery.Answer                  // endpoints from Assignment
	AnswerNotes []messages.Problem                // ignored fields of Assignment
	Host        string                            // host:port
	Service     string
	Children    []string
	// OutlierDetection is nil for aggregates, and if the cluster doesn't configure it.
	OutlierDetection *lbconfig.OutlierDetection
	// Notes lists the ignored fields of the cluster.
	Notes []messages.Problem
}

// Read parses a cluster. If it's invalid, the error is an *messages.Invalid.
func Read(c *clusterv3.Cluster) (*Cluster, error) {
	r := reader{message: c, cluster: &Cluster{Name: c.GetName()}}
	r.checkName("name", c.GetName())
	r.readKind()
	if r.problems.Err() == nil && r.cluster.Kind != Aggregate { // an aggregate's policy is ignored (gRFC A75)
		r.checkPolicy()
	}
	r.readOutlierDetection()
	r.notes.AddUnused("", c, unnotedFields...)
	r.cluster.Notes = r.notes.Problems
	if err := r.problems.Err(); err != nil {
		return nil, err
	}
	return r.cluster, nil
}

type reader struct {
	message         *clusterv3.Cluster
	cluster         *Cluster
	problems, notes messages.Invalid
}

func (r *reader) checkName(path, name string) {
	if problem := NameProblem(name); problem != "" {
		r.problems.Add(path, "%s", problem)
	}
}

// NameProblem says what's wrong with the name of a cluster, or "" if it's fine.
func NameProblem(name string) string {
	switch {
	case name == "":
		return "a cluster has no name"
	case strings.HasPrefix(name, "xdstp:"):
		return fmt.Sprintf("%.100q is an xdstp: name, which is not supported", name)
	}
	return ""
}

const supportedTypes = "want STATIC, STRICT_DNS, LOGICAL_DNS, EDS, or cluster_type envoy.clusters.aggregate"

func (r *reader) readKind() {
	if custom := r.message.GetClusterType(); custom != nil {
		r.readAggregate(custom)
		return
	}
	switch kind := r.message.GetType(); kind {
	case clusterv3.Cluster_STATIC:
		r.readAssignment()
	case clusterv3.Cluster_STRICT_DNS:
		r.cluster.Kind = StrictDNS
		r.readAssignment()
	case clusterv3.Cluster_LOGICAL_DNS:
		r.cluster.Kind = LogicalDNS
		r.readHost()
	case clusterv3.Cluster_EDS:
		r.cluster.Kind = EDS
		r.readService()
	default:
		r.problems.Add("type", "type %v is not supported, %s", kind, supportedTypes)
	}
}

const aggregateName = "envoy.clusters.aggregate" // required by both Envoy and gRPC (gRFC A37)

func (r *reader) readAggregate(custom *clusterv3.Cluster_CustomClusterType) {
	if name := custom.GetName(); name != aggregateName {
		r.problems.Add("cluster_type.name", "cluster_type %.100q is not supported, %s", name, supportedTypes)
		return
	}
	r.cluster.Kind = Aggregate
	var config aggregatev3.ClusterConfig
	if err := custom.GetTypedConfig().UnmarshalTo(&config); err != nil {
		r.problems.Add("cluster_type.typed_config", "want a %s: %v", config.ProtoReflect().Descriptor().FullName(), err)
		return
	}
	if len(config.GetClusters()) == 0 {
		r.problems.Add("cluster_type.typed_config", "the aggregate cluster names no clusters")
	}
	for _, name := range config.GetClusters() {
		if r.checkName("cluster_type.typed_config", name); r.problems.Err() != nil {
			return
		}
	}
	r.cluster.Children = config.GetClusters()
}

func (r *reader) readService() {
	config := r.message.GetEdsClusterConfig()
	switch source := config.GetEdsConfig().GetConfigSourceSpecifier().(type) {
	case nil, *corev3.ConfigSource_Ads, *corev3.ConfigSource_Self:
	default:
		r.problems.Add("eds_cluster_config.eds_config", "endpoints by %s are not supported, want ads or self", strings.TrimPrefix(fmt.Sprintf("%T", source), "*corev3.ConfigSource_"))
	}
	if r.cluster.Service = config.GetServiceName(); r.cluster.Service == "" {
		r.cluster.Service = r.cluster.Name
		return
	}
	r.checkName("eds_cluster_config.service_name", r.cluster.Service)
}

func (r *reader) readAssignment() {
	given := r.message.GetLoadAssignment()
	if given == nil {
		r.problems.Add("load_assignment", "load_assignment is missing")
		return
	}
	if given.GetClusterName() == "" {
		given = proto.CloneOf(given)
		given.ClusterName = r.cluster.Name
	}
	r.cluster.Assignment = given
	var err error
	r.cluster.Answer, r.cluster.AnswerNotes, err = messages.Read(r.cluster.Assignment)
	r.problems.Merge("load_assignment", err)
}

// For an aggregate, readOutlierDetection validates the field but doesn't use it, since it doesn't
// apply to the clusters that the aggregate is made of (gRFCs A50 and A75).
func (r *reader) readOutlierDetection() {
	given := r.message.GetOutlierDetection()
	if given == nil {
		return
	}
	read, notes, err := messages.ReadOutlierDetection(given)
	r.problems.Merge("outlier_detection", err)
	if r.cluster.Kind == Aggregate {
		r.notes.Add("outlier_detection", "outlier_detection has no effect in an aggregate, want it in the clusters that it names")
		return
	}
	r.cluster.OutlierDetection = read
	r.notes.Merge("outlier_detection", &messages.Invalid{Problems: notes})
}

func (r *reader) readHost() {
	const path = "load_assignment"
	localities := r.message.GetLoadAssignment().GetEndpoints()
	if len(localities) != 1 || len(localities[0].GetLbEndpoints()) != 1 {
		r.problems.Add(path, "a LOGICAL_DNS cluster needs one locality with one endpoint")
		return
	}
	const addressPath = path + ".endpoints[0].lb_endpoints[0].endpoint.address"
	address := localities[0].GetLbEndpoints()[0].GetEndpoint().GetAddress()
	switch host, invalid := messages.Dial(address); {
	case address.GetSocketAddress() == nil:
		r.problems.Add(addressPath, "the endpoint of a LOGICAL_DNS cluster has no socket_address")
	case address.GetSocketAddress().GetResolverName() != "":
		r.problems.Add(addressPath+".socket_address.resolver_name", "resolver_name is not supported")
	default:
		r.problems.Merge(addressPath, &invalid)
		r.cluster.Host = host
	}
}

// Fields we don't need a note for: either we support them, or they only matter for Envoy's own
// connections.
var unnotedFields = []protoreflect.Name{
	"name", "type", "cluster_type", "eds_cluster_config", "load_assignment", "lb_policy", "load_balancing_policy",
	"alt_stat_name", "connect_timeout", "dns_lookup_family", "metadata", "typed_extension_protocol_options",
	"http2_protocol_options", "protocol_selection", "wait_for_warm_on_init", "track_cluster_stats",
	"outlier_detection",
}

const weightedRoundRobin = "understudy_weighted_round_robin" // used for every cluster (gRFC A34)

// Weighted round robin is the only policy we accept. It can be the lb_policy ROUND_ROBIN or an
// entry of load_balancing_policy (gRFC A52).
func (r *reader) checkPolicy() {
	const want = "want ROUND_ROBIN, which is weighted"
	list := r.message.GetLoadBalancingPolicy()
	if list == nil {
		if p := r.message.GetLbPolicy(); p != clusterv3.Cluster_ROUND_ROBIN {
			r.problems.Add("lb_policy", "lb_policy %v is not supported, %s", p, want)
		}
		return
	}
	var given []string
	for _, p := range list.GetPolicies() {
		config := p.GetTypedExtensionConfig().GetTypedConfig()
		if isRoundRobin(config) {
			return
		}
		given = append(given, config.GetTypeUrl()[strings.LastIndexByte(config.GetTypeUrl(), '/')+1:])
	}
	r.problems.Add("load_balancing_policy", "none of the policies is supported (%.300s), %s", strings.Join(given, ", "), want)
}

func isRoundRobin(config *anypb.Any) bool {
	var locality wrrlocalityv3.WrrLocality
	var typedStruct typev3.TypedStruct
	switch {
	case config.MessageIs(&roundrobinv3.RoundRobin{}):
		return true
	case config.MessageIs(&locality):
		return config.UnmarshalTo(&locality) == nil && slices.ContainsFunc(locality.GetEndpointPickingPolicy().GetPolicies(), func(p *clusterv3.LoadBalancingPolicy_Policy) bool {
			inner := p.GetTypedExtensionConfig().GetTypedConfig()
			return !inner.MessageIs(&locality) && isRoundRobin(inner)
		})
	}
	return config.UnmarshalTo(&typedStruct) == nil && strings.HasSuffix(typedStruct.GetTypeUrl(), "/"+weightedRoundRobin)
}

var readTypes = func() map[protoreflect.FullName]protoreflect.MessageType { // types of the Anys that Read reads
	types := make(map[protoreflect.FullName]protoreflect.MessageType)
	for _, m := range []proto.Message{&aggregatev3.ClusterConfig{}, &roundrobinv3.RoundRobin{}, &wrrlocalityv3.WrrLocality{}, &typev3.TypedStruct{}} {
		types[proto.MessageName(m)] = m.ProtoReflect().Type()
	}
	return types
}()

// ReadType returns the type with the given URL, or nil if Read doesn't read Anys of this type. We
// don't look at the types that happen to be linked into the program, so all programs accept the
// same files.
func ReadType(url string) protoreflect.MessageType { return readTypes[NameOfType(url)] }

func NameOfType(url string) protoreflect.FullName {
	return protoreflect.FullName(url[strings.LastIndexByte(url, '/')+1:])
}
