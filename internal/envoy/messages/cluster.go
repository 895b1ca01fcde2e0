// Package messages reads Envoy's messages the way gRPC does: a ClusterLoadAssignment becomes an
// Answer (gRFC A27), and the outlier_detection of a Cluster becomes the configuration of a policy
// (gRFC A50). If gRPC would reject a message, it's an error. For ignored fields, there are notes.
//
// Only sources that read Envoy's formats import this package, so other clients don't have to link
// Envoy's protos.
package messages

import (
	"crypto/sha256"
	"fmt"
	"math"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	whereabouts "github.com/understudy-lb/understudy/internal/net/location"
)

const maxWeight = math.MaxUint32 // limits the sum of weights in a priority and in a locality (gRFC A27)

// Read converts a cluster to an answer. The cluster may have no endpoints, in which case the answer
// is marked as intentionally empty. The notes describe ignored fields. The answer has them too, as
// text.
//
// If the cluster violates gRPC's rules (gRFC A27, and how other gRPC clients behave), the error is
// an *Invalid. A cluster is invalid if
//
//   - the cluster has no name;
//   - there's a gap in the priorities;
//   - a locality is missing, or occurs twice in a priority;
//   - an endpoint has weight 0;
//   - the weights of a priority's localities, or of a locality's endpoints, sum to more than
//     4,294,967,295;
//   - an address occurs twice;
//   - a healthy endpoint has no address that gRPC can dial;
//   - a drop has an unknown denominator.
//
// We don't check localities that get no traffic, or fields that gRPC doesn't use. Otherwise,
// clients would break as soon as a server starts to set those.
func Read(cluster *endpointv3.ClusterLoadAssignment) (discovery.Answer, []Problem, error) {
	r := reader{priorities: make(map[uint32]*priority), addresses: make(map[string]place)}
	if cluster.GetClusterName() == "" {
		r.problems.Add("cluster_name", "cluster_name is empty")
	}
	for i, l := range cluster.GetEndpoints() {
		r.locality(i, l)
	}
	for i, l := range cluster.GetEndpoints() {
		if p := l.GetPriority(); p > 0 && r.priorities[p] != nil && r.priorities[p-1] == nil {
			r.problems.Add(fmt.Sprintf("endpoints[%d].priority", i), "priority %d is used, but priority %d has no locality that gets traffic", p, p-1)
			r.priorities[p-1] = new(priority) // don't report this gap again
		}
	}
	var drops []discovery.Drop // the order matters
	for i, drop := range cluster.GetPolicy().GetDropOverloads() {
		given := drop.GetDropPercentage()
		unit := perMillion[given.GetDenominator()]
		if unit == 0 {
			r.problems.Add(fmt.Sprintf("policy.drop_overloads[%d].drop_percentage.denominator", i), "denominator is %v, want HUNDRED, TEN_THOUSAND or MILLION", given.GetDenominator())
		}
		drops = append(drops, discovery.Drop{Category: drop.GetCategory(), PerMillion: uint32(min(uint64(given.GetNumerator())*unit, lbconfig.Million))})
	}
	if err := r.problems.Err(); err != nil {
		return discovery.Answer{}, nil, err
	}
	r.notes.AddUnused("policy", cluster.GetPolicy(), "drop_overloads")
	r.notes.AddUnused("", cluster, "cluster_name", "endpoints", "policy") // all that gRFC A27 uses
	a := discovery.Answer{Notes: Texts(r.notes.Problems), Service: cluster.GetClusterName(), Empty: true, Drops: drops}
	if encoded, err := (proto.MarshalOptions{Deterministic: true}).Marshal(cluster); err == nil {
		a.Identity = fmt.Sprintf("%x", sha256.Sum256(encoded))
	}
	for p := range uint32(len(r.priorities)) {
		a.Priorities = append(a.Priorities, discovery.Priority{Localities: r.priorities[p].localities})
	}
	switch n := len(cluster.GetEndpoints()); {
	case n == 0:
		a.Why = fmt.Sprintf("cluster %q has no localities", cluster.GetClusterName())
	case len(a.Priorities) == 0:
		a.Why = fmt.Sprintf("cluster %q has no locality with a weight (%d in total)", cluster.GetClusterName(), n)
	}
	return a, r.notes.Problems, nil
}

type reader struct {
	problems, notes Invalid
	priorities      map[uint32]*priority // only has priorities with traffic
	addresses       map[string]place
}

type priority struct {
	localities []discovery.Locality
	weights    uint64
	names      map[string]int // index of the last locality by that name
}

type place struct{ locality, endpoint int }

func (p place) String() string {
	return fmt.Sprintf("endpoints[%d].lb_endpoints[%d]", p.locality, p.endpoint)
}

// Per gRFC A27, a locality without a weight "is skipped".
func (r *reader) locality(i int, l *endpointv3.LocalityLbEndpoints) {
	path, weight := fmt.Sprintf("endpoints[%d]", i), l.GetLoadBalancingWeight()
	read := discovery.Locality{
		Region:  l.GetLocality().GetRegion(),
		Zone:    l.GetLocality().GetZone(),
		SubZone: l.GetLocality().GetSubZone(),
		Weight:  weight.GetValue(),
	}
	name := topology.LocalityName(read.Region, read.Zone, read.SubZone)
	if weight.GetValue() == 0 {
		text := "no weight"
		if weight != nil {
			text = "weight 0"
		}
		r.notes.Add(path, "locality %q of priority %d has %s and gets no traffic", name, l.GetPriority(), text)
		return
	}
	if l.GetLbConfig() != nil {
		r.notes.Add(path, "load_balancer_endpoints and leds_cluster_locality_config have no effect, want lb_endpoints")
	}
	if l.GetLocality() == nil {
		r.problems.Add(path, "locality is missing")
	}
	p := r.priorities[l.GetPriority()]
	if p == nil {
		p = &priority{names: make(map[string]int)}
		r.priorities[l.GetPriority()] = p
	}
	if last, ok := p.names[name]; ok {
		r.problems.Add(path+".locality", "locality %q is already in priority %d, as endpoints[%d]", name, l.GetPriority(), last)
	}
	p.names[name] = i
	if exceeds(&p.weights, weight.GetValue()) {
		r.problems.Add(path+".load_balancing_weight", "the weights of the localities of priority %d sum to more than %d", l.GetPriority(), uint64(maxWeight))
	}
	read.Endpoints = make([]discovery.Endpoint, len(l.GetLbEndpoints()))
	var sum uint64
	for j, lb := range l.GetLbEndpoints() {
		at, weight := place{i, j}, uint32(1) // the default (gRFC A34, "Notes")
		if w := lb.GetLoadBalancingWeight(); w != nil {
			weight = w.GetValue()
		}
		if weight == 0 {
			r.problems.Add(at.String()+".load_balancing_weight", "weight is 0, want at least 1 (or no weight, which counts as 1); to give an endpoint no calls, set its health_status to DRAINING")
		}
		if exceeds(&sum, weight) {
			r.problems.Add(at.String()+".load_balancing_weight", "the weights of the endpoints of this locality sum to more than %d", uint64(maxWeight))
		}
		read.Endpoints[j] = discovery.Endpoint{Addresses: r.addressesOf(at, lb), Weight: weight, Health: health(lb.GetHealthStatus()), Hostname: lb.GetEndpoint().GetHostname()}
		readHints(lb, &read.Endpoints[j])
	}
	p.localities = append(p.localities, read)
}

// exceeds adds a weight to a sum, and reports whether that's what pushed the sum over maxWeight.
func exceeds(sum *uint64, weight uint32) bool {
	before := *sum
	*sum += uint64(weight)
	return before <= maxWeight && *sum > maxWeight
}

// addressesOf returns the addresses of an endpoint. If it's neither UNKNOWN nor HEALTHY, it can't
// receive calls anyway (gRFC A27), so we skip invalid addresses without complaining and only report
// duplicates.
func (r *reader) addressesOf(at place, lb *endpointv3.LbEndpoint) (targets []string) {
	isHealthy := lb.GetHealthStatus() == corev3.HealthStatus_UNKNOWN || lb.GetHealthStatus() == corev3.HealthStatus_HEALTHY
	if lb.GetEndpoint() == nil {
		if isHealthy {
			r.problems.Add(at.String(), "endpoint is missing (endpoint_name is not supported)")
		}
		return nil
	}
	addresses, paths := []*corev3.Address{lb.GetEndpoint().GetAddress()}, []string{".endpoint.address"}
	for k, additional := range lb.GetEndpoint().GetAdditionalAddresses() {
		addresses, paths = append(addresses, additional.GetAddress()), append(paths, fmt.Sprintf(".endpoint.additional_addresses[%d].address", k))
	}
	for k, address := range addresses {
		target, invalid := Dial(address)
		first, again := r.addresses[target]
		switch {
		case target == "" && isHealthy:
			r.problems.Merge(at.String()+paths[k], &invalid)
		case target == "":
		case again:
			r.problems.Add(at.String()+paths[k], "address %s is already in %s", target, first)
		default:
			r.addresses[target] = at
			targets = append(targets, target)
		}
	}
	return targets
}

func health(status corev3.HealthStatus) discovery.Health {
	for health, written := range statuses {
		if written == status {
			return health
		}
	}
	return discovery.Unhealthy
}

var perMillion = map[typev3.FractionalPercent_DenominatorType]uint64{
	typev3.FractionalPercent_HUNDRED:      lbconfig.Million / 100,
	typev3.FractionalPercent_TEN_THOUSAND: lbconfig.Million / 10_000,
	typev3.FractionalPercent_MILLION:      1,
}

// Topology hints are in an endpoint's metadata, under this key of filter_metadata:
//
//	metadata: {filter_metadata: {understudy.dev: {forZones: [a], forNodes: [n1]}}}
const hintsKey = "understudy.dev"

const maxHints = 64 // zones and nodes each; Kubernetes allows at most 8

// Invalid hints are ignored. It wouldn't be worth rejecting the cluster over them, since they only
// move calls around within a priority.
func readHints(lb *endpointv3.LbEndpoint, endpoint *discovery.Endpoint) {
	fields := lb.GetMetadata().GetFilterMetadata()[hintsKey].GetFields()
	endpoint.ForZones, endpoint.ForNodes = readNames(fields["forZones"]), readNames(fields["forNodes"])
}

// readNames returns the valid names in a list. If the list is too long, we don't use it at all.
func readNames(v *structpb.Value) (names []string) {
	values := v.GetListValue().GetValues()
	if len(values) > maxHints {
		return nil
	}
	for _, v := range values {
		if name := v.GetStringValue(); name != "" && whereabouts.Check(name) == nil {
			names = append(names, name)
		}
	}
	return names
}
