package messages

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
)

// maxWeight is the maximum sum of the weights of a priority's localities, and of a locality's
// endpoints (gRFC A27).
const maxWeight = math.MaxUint32

type endpointIndex struct{ locality, endpoint int }

type checker struct {
	cluster   *endpointv3.ClusterLoadAssignment
	problems  Invalid
	addresses map[string]endpointIndex
}

// Validate returns the error that Read would return. It is safe for concurrent use.
//
// Validate checks only the fields that gRPC uses. If it also rejected other fields, clients would
// break when a server starts to set them (gRFC A27). Read notes violations of Envoy's other rules.
func Validate(cluster *endpointv3.ClusterLoadAssignment) error {
	c := checker{cluster: cluster, addresses: make(map[string]endpointIndex)}
	if cluster.GetClusterName() == "" {
		c.problems.Add("cluster_name", "cluster_name is empty")
	}
	c.checkLocalities()
	for i, locality := range cluster.GetEndpoints() {
		if hasTraffic(locality) {
			c.checkEndpoints(i, locality)
		}
	}
	c.checkDrops()
	return c.problems.Err()
}

// hasTraffic reports whether a locality can get calls. A locality without a weight "is skipped"
// (gRFC A27).
func hasTraffic(locality *endpointv3.LocalityLbEndpoints) bool {
	return locality.GetLoadBalancingWeight().GetValue() > 0
}

type priorityKey struct {
	priority uint32
	locality string
}

func (c *checker) checkLocalities() {
	sums := make(map[uint32]uint64)
	seen := make(map[priorityKey]int)
	for i, locality := range c.cluster.GetEndpoints() {
		if !hasTraffic(locality) {
			continue
		}
		if locality.GetLocality() == nil {
			c.problems.Add(fmt.Sprintf("endpoints[%d]", i), "locality is missing")
		}
		weight, priority := uint64(locality.GetLoadBalancingWeight().GetValue()), locality.GetPriority()
		key := priorityKey{priority, LocalityName(locality.GetLocality())}
		if first, ok := seen[key]; ok {
			c.problems.Add(fmt.Sprintf("endpoints[%d].locality", i), "locality %q is already in priority %d, as endpoints[%d]", key.locality, priority, first)
		} else {
			seen[key] = i
		}
		if previous := sums[priority]; previous <= maxWeight && previous+weight > maxWeight {
			c.problems.Add(fmt.Sprintf("endpoints[%d].load_balancing_weight", i), "the weights of the localities of priority %d sum to more than %d", priority, uint64(maxWeight))
		}
		sums[priority] += weight
	}
	c.checkGaps(sums)
}

// checkGaps adds a problem for each gap in the priorities. used has an entry for each priority with
// traffic.
func (c *checker) checkGaps(used map[uint32]uint64) {
	for i, locality := range c.cluster.GetEndpoints() {
		p := locality.GetPriority()
		if p == 0 || used[p] == 0 || used[p-1] != 0 {
			continue
		}
		c.problems.Add(fmt.Sprintf("endpoints[%d].priority", i), "priority %d is used, but priority %d has no locality that gets traffic", p, p-1)
		used[p-1] = 1 // prevents another report of this gap
	}
}

func (c *checker) checkDrops() {
	for i, drop := range c.cluster.GetPolicy().GetDropOverloads() {
		if d := drop.GetDropPercentage().GetDenominator(); perMillion[d] == 0 {
			c.problems.Add(fmt.Sprintf("policy.drop_overloads[%d].drop_percentage.denominator", i), "denominator is %v, want HUNDRED, TEN_THOUSAND or MILLION", d)
		}
	}
}

func (c *checker) checkEndpoints(i int, locality *endpointv3.LocalityLbEndpoints) {
	var sum uint64
	for j, endpoint := range locality.GetLbEndpoints() {
		if w := endpoint.GetLoadBalancingWeight(); w != nil && w.GetValue() == 0 {
			c.problems.Add(fmt.Sprintf("endpoints[%d].lb_endpoints[%d].load_balancing_weight", i, j), "weight is 0, want at least 1 (or no weight, which counts as 1); to give an endpoint no calls, set its health_status to DRAINING")
		}
		before := sum
		sum += uint64(Weight(endpoint))
		if before <= maxWeight && sum > maxWeight {
			c.problems.Add(fmt.Sprintf("endpoints[%d].lb_endpoints[%d].load_balancing_weight", i, j), "the weights of the endpoints of this locality sum to more than %d", uint64(maxWeight))
		}
		c.checkAddresses(i, j, endpoint)
	}
}

// checkAddresses checks the addresses of an endpoint. If the endpoint is unhealthy, it only checks
// for duplicates.
func (c *checker) checkAddresses(i, j int, lb *endpointv3.LbEndpoint) {
	healthy := Healthy(lb)
	if lb.GetEndpoint() == nil {
		if healthy {
			c.problems.Add(fmt.Sprintf("endpoints[%d].lb_endpoints[%d]", i, j), "endpoint is missing (endpoint_name is not supported)")
		}
		return
	}
	for k, address := range addressesOf(lb) {
		path := func() string {
			if k == 0 {
				return fmt.Sprintf("endpoints[%d].lb_endpoints[%d].endpoint.address", i, j)
			}
			return fmt.Sprintf("endpoints[%d].lb_endpoints[%d].endpoint.additional_addresses[%d].address", i, j, k-1)
		}
		target, invalid := Dial(address)
		if target == "" {
			if healthy {
				c.problems.Merge(path(), &invalid)
			}
			continue
		}
		if first, ok := c.addresses[target]; ok {
			c.problems.Add(path(), "address %s is already in endpoints[%d].lb_endpoints[%d]", target, first.locality, first.endpoint)
			continue
		}
		c.addresses[target] = endpointIndex{i, j}
	}
}

// addNotes adds notes about what gRPC ignores (gRFC A27), and about violations of Envoy's rules, but
// not within ignored fields.
func addNotes(cluster *endpointv3.ClusterLoadAssignment, notes *Invalid) {
	var ignored []string
	for i, locality := range cluster.GetEndpoints() {
		path := fmt.Sprintf("endpoints[%d]", i)
		if hasTraffic(locality) {
			noteUnused(locality, path, notes)
			continue
		}
		ignored = append(ignored, path+".")
		weight := "no weight"
		if locality.GetLoadBalancingWeight() != nil {
			weight = "weight 0"
		}
		notes.Add(path, "locality %q of priority %d has %s and gets no traffic", LocalityName(locality.GetLocality()), locality.GetPriority(), weight)
	}
	ignored = append(ignored, notes.AddUnused("policy", cluster.GetPolicy(), "drop_overloads")...)
	ignored = append(ignored, notes.AddUnused("", cluster, "cluster_name", "endpoints", "policy")...)
	for i, drop := range cluster.GetPolicy().GetDropOverloads() {
		if rate := dropRate(drop); rate > lbconfig.Million {
			notes.Add(fmt.Sprintf("policy.drop_overloads[%d].drop_percentage", i),
				"category %q drops %v %%, which counts as 100 %%", drop.GetCategory(), float64(rate)/(lbconfig.Million/100))
		}
	}
	var violations Invalid
	if err := cluster.ValidateAll(); err != nil {
		violations.addViolations("", err)
	}
	for _, v := range violations.Problems {
		if !slices.ContainsFunc(ignored, func(path string) bool { return strings.HasPrefix(v.Path, path) }) {
			notes.Add(v.Path, "%s", v.Text)
		}
	}
}

// AddUnused adds a note for each field that is set, but not among those that are used. It returns the
// paths of these fields.
func (e *Invalid) AddUnused(path string, m proto.Message, used ...protoreflect.Name) (paths []string) {
	fields := m.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if name := fields.Get(i).Name(); m.ProtoReflect().Has(fields.Get(i)) && !slices.Contains(used, name) {
			paths = append(paths, strings.Trim(path+"."+string(name), "."))
			e.Add(paths[len(paths)-1], "%s has no effect", name)
		}
	}
	return paths
}

// violation is the interface of errors from the generated validation of Envoy's protos.
type violation interface {
	error
	Field() string // Go name of the field, with a list index or map key, such as "Endpoints[0]"
	Reason() string
	Cause() error
}

var wordEnd = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// addViolations adds the violations in err as notes. It skips violations of the rules for
// load_balancing_weight, because gRPC defines the meaning of a zero weight.
func (e *Invalid) addViolations(path string, err error) {
	if list, ok := err.(interface{ AllErrors() []error }); ok {
		for _, err := range list.AllErrors() {
			e.addViolations(path, err)
		}
		return
	}
	v, ok := err.(violation)
	if !ok {
		e.Add(path, "%v", err)
		return
	}
	name, index, _ := strings.Cut(v.Field(), "[")
	name = strings.ToLower(wordEnd.ReplaceAllString(name, "${1}_${2}"))
	if path = strings.Trim(path+"."+name, "."); index != "" {
		path += "[" + index
	}
	switch {
	case name == "load_balancing_weight":
	case v.Cause() != nil:
		e.addViolations(path, v.Cause())
	default:
		e.Add(path, "%s %s, by Envoy's rules; gRPC does not require it", name, strings.TrimPrefix(v.Reason(), "value "))
	}
}

func whyEmpty(cluster *endpointv3.ClusterLoadAssignment) string {
	if n := len(cluster.GetEndpoints()); n > 0 {
		return fmt.Sprintf("cluster %q has no locality with a weight (%d in total)", cluster.GetClusterName(), n)
	}
	return fmt.Sprintf("cluster %q has no localities", cluster.GetClusterName())
}

func noteUnused(locality *endpointv3.LocalityLbEndpoints, path string, notes *Invalid) {
	if locality.GetLbConfig() != nil {
		notes.Add(path, "load_balancer_endpoints and leds_cluster_locality_config have no effect, want lb_endpoints")
	}
	for j, lb := range locality.GetLbEndpoints() {
		if !Healthy(lb) {
			continue
		}
		socket := lb.GetEndpoint().GetAddress().GetSocketAddress()
		if p := socket.GetProtocol(); p != corev3.SocketAddress_TCP {
			notes.Add(fmt.Sprintf("%s.lb_endpoints[%d].endpoint.address.socket_address.protocol", path, j), "protocol %v has no effect, TCP is used", p)
		}
	}
}
