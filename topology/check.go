package topology

import (
	"fmt"
	"math"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// maxWeight is the most that the weights of the localities of one priority, and
// those of the endpoints of one locality, may sum to (gRFC A27, rules for EDS).
const maxWeight = math.MaxUint32

// place is the index of a locality and that of an endpoint in it.
type place struct{ locality, endpoint int }

// checker finds all that is wrong with one cluster.
type checker struct {
	cluster   *endpointv3.ClusterLoadAssignment
	prefix    string // of every path
	problems  *problems
	addresses map[string]place // to the endpoint that has it
}

// check adds to found what is wrong with cluster; prefix is put before every path.
// Localities that get no traffic need only be well-formed: gRPC leaves them out
// before it looks any further.
func check(cluster *endpointv3.ClusterLoadAssignment, prefix string, found *problems) {
	c := checker{cluster: cluster, prefix: prefix, problems: found, addresses: make(map[string]place)}
	if err := cluster.ValidateAll(); err != nil {
		c.addViolations(err, prefix, cluster.ProtoReflect().Descriptor())
	}
	c.checkLocalities()
	for i, locality := range cluster.GetEndpoints() {
		if locality.GetLoadBalancingWeight().GetValue() > 0 {
			c.checkEndpoints(i, locality)
		} else {
			c.checkWeights(i, locality)
		}
	}
}

func (c *checker) path(format string, args ...any) string {
	return join(c.prefix, fmt.Sprintf(format, args...))
}

// priorityKey is a locality in a priority.
type priorityKey struct {
	priority uint32
	locality string
}

// checkLocalities looks at the localities as a whole: their names, the sums of
// their weights, the priorities that they make.
func (c *checker) checkLocalities() {
	sums := make(map[uint32]uint64)
	seen := make(map[priorityKey]int)
	for i, locality := range c.cluster.GetEndpoints() {
		if locality.GetLocality() == nil {
			c.problems.add(c.path("endpoints[%d]", i), "locality is missing")
		}
		if locality.GetLbConfig() != nil {
			c.problems.add(c.path("endpoints[%d]", i), "load_balancer_endpoints and leds_cluster_locality_config are not supported, want lb_endpoints")
		}
		weight, priority := uint64(locality.GetLoadBalancingWeight().GetValue()), locality.GetPriority()
		if weight == 0 {
			continue
		}
		key := priorityKey{priority, LocalityName(locality.GetLocality())}
		if first, ok := seen[key]; ok {
			c.problems.add(c.path("endpoints[%d].locality", i), "locality %q is in priority %d already, as endpoints[%d]", key.locality, priority, first)
		} else {
			seen[key] = i
		}
		if before := sums[priority]; before <= maxWeight && before+weight > maxWeight {
			c.problems.add(c.path("endpoints[%d].load_balancing_weight", i), "the weights of the localities of priority %d sum to more than %d", priority, uint64(maxWeight))
		}
		sums[priority] += weight
	}
	c.checkGaps(sums)
}

// checkGaps says which priority is missing below the lowest one (the highest
// number) that has a locality with traffic.
func (c *checker) checkGaps(used map[uint32]uint64) {
	for i, locality := range c.cluster.GetEndpoints() {
		p := locality.GetPriority()
		if p == 0 || used[p] == 0 || used[p-1] != 0 {
			continue
		}
		c.problems.add(c.path("endpoints[%d].priority", i), "priority %d is used, but priority %d has no locality that gets traffic", p, p-1)
		used[p-1] = 1 // once for each gap
	}
}

// checkWeights looks for endpoint weights of zero.
func (c *checker) checkWeights(i int, locality *endpointv3.LocalityLbEndpoints) {
	for j, endpoint := range locality.GetLbEndpoints() {
		if w := endpoint.GetLoadBalancingWeight(); w != nil && w.GetValue() == 0 {
			c.problems.add(c.path("endpoints[%d].lb_endpoints[%d].load_balancing_weight", i, j), "weight is 0, want at least 1 (or none, which is 1)")
		}
	}
}

// checkEndpoints looks at the endpoints of one locality.
func (c *checker) checkEndpoints(i int, locality *endpointv3.LocalityLbEndpoints) {
	c.checkWeights(i, locality)
	var sum uint64
	for j, endpoint := range locality.GetLbEndpoints() {
		before := sum
		sum += uint64(weightOf(endpoint))
		if before <= maxWeight && sum > maxWeight {
			c.problems.add(c.path("endpoints[%d].lb_endpoints[%d].load_balancing_weight", i, j), "the weights of the endpoints of this locality sum to more than %d", uint64(maxWeight))
		}
		c.checkAddresses(i, j, endpoint)
	}
}

// checkAddresses looks at the addresses of one endpoint.
func (c *checker) checkAddresses(i, j int, lb *endpointv3.LbEndpoint) {
	if lb.GetEndpoint() == nil {
		c.problems.add(c.path("endpoints[%d].lb_endpoints[%d]", i, j), "endpoint is missing (endpoint_name is not supported)")
		return
	}
	for k, address := range addressesOf(lb) {
		at := func() string {
			if k == 0 {
				return c.path("endpoints[%d].lb_endpoints[%d].endpoint.address", i, j)
			}
			return c.path("endpoints[%d].lb_endpoints[%d].endpoint.additional_addresses[%d].address", i, j, k-1)
		}
		dial, problem := dialable(address)
		if problem != "" {
			c.problems.add(at(), "%s", problem)
		}
		if dial == "" {
			continue
		}
		if first, ok := c.addresses[dial]; ok {
			c.problems.add(at(), "address %s is that of endpoints[%d].lb_endpoints[%d] already", dial, first.locality, first.endpoint)
			continue
		}
		c.addresses[dial] = place{i, j}
	}
}
