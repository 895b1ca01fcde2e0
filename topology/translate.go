package topology

import (
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/hierarchy"
	"github.com/understudy-lb/understudy/internal/lbconfig"
)

// Translator turns clusters into trees, update by update. It remembers the names of
// the children that it made, so each channel needs its own. The zero value is ready
// to use. It is not safe for concurrent use.
type Translator struct {
	// Name goes before the names of the children, "NAME/child0" in place of "child0",
	// so that the mechanisms of a channel share no name (see Join).
	Name string
	// TrustNames makes the hostname of an endpoint, where it has one, the name that its
	// certificate is verified against.
	TrustNames bool
	names      childNames
}

// Translate returns the tree over a cluster. Without any endpoints all calls fail. The
// cluster is not modified.
//
// A locality whose weight is unset or 0 gets no traffic. The tree notes that, and
// whatever breaks the rules in Envoy's .proto files but not gRPC's. Endpoints without a
// weight have the weight 1. Those whose health status is neither UNKNOWN nor HEALTHY
// are left out.
//
// It returns an *Invalid, and forgets nothing of the update before, if gRPC's rules (gRFC
// A27 and what its clients agree on) are broken: an endpoint's weight of 0; weights of a
// priority's localities, or of a locality's endpoints, that sum past 4,294,967,295; an
// address twice in a cluster; a locality that is missing, or twice in a priority; a gap in
// the priorities; a healthy endpoint without an address that gRPC can dial; a drop of an
// unknown denominator; a cluster without a name. Nothing in a locality that gets no
// traffic breaks a rule.
func (t *Translator) Translate(cluster *endpointv3.ClusterLoadAssignment) (Tree, error) {
	var found, notes problems
	check(cluster, &found)
	if err := found.err(); err != nil {
		return Tree{}, err
	}
	note(cluster, &notes)
	priorities := split(cluster)
	tree := t.build(priorities)
	tree.Notes = notes.list
	if len(priorities) == 0 {
		tree.Empty = whyEmpty(cluster)
	}
	return tree, nil
}

// priority is one priority of a cluster.
type priority struct {
	cluster    *endpointv3.ClusterLoadAssignment
	localities []Locality // those with traffic, in the order given
}

// split returns the priorities of cluster, in which check found nothing.
func split(cluster *endpointv3.ClusterLoadAssignment) []priority {
	var priorities []priority
	for locality := range Localities(cluster) {
		if locality.Weight == 0 {
			continue
		}
		for int(locality.Priority) >= len(priorities) {
			priorities = append(priorities, priority{cluster: cluster})
		}
		p := &priorities[locality.Priority]
		p.localities = append(p.localities, locality)
	}
	return priorities
}

// addresses returns the first address of each endpoint, and whether there is a healthy one.
func (p priority) addresses() map[string]bool {
	all := make(map[string]bool)
	for _, locality := range p.localities {
		for e := range locality.Endpoints() {
			address, _ := dialable(e.lb.GetEndpoint().GetAddress())
			all[address] = all[address] || e.Healthy()
		}
	}
	return all
}

// build returns the tree over priorities and remembers its names.
func (t *Translator) build(priorities []priority) Tree {
	members := make([][]member, len(priorities))
	for i, p := range priorities {
		for _, locality := range p.localities {
			members[i] = append(members[i], member{p.cluster.GetClusterName(), locality.Name})
		}
	}
	children, names := t.names.assign(members, func(i int) map[string]bool { return priorities[i].addresses() })
	t.names = names
	prefix := ""
	if t.Name != "" {
		prefix = t.Name + "/"
	}

	var tree Tree
	tree.priorities = make([]priorityChild, 0, len(priorities))
	for i, p := range priorities {
		child := priorityChild{
			name:               prefix + children[i].name,
			title:              titleOf(members[i]),
			cluster:            p.cluster.GetClusterName(),
			ignoreReresolution: true, // whoever wrote the addresses sends new ones unasked
			drops:              dropCategories(p.cluster),
			localities:         make(map[string]uint32, len(p.localities)),
		}
		for _, locality := range p.localities {
			child.localities[locality.Name] = locality.Weight
			tree.Endpoints = t.appendEndpoints(tree.Endpoints, locality, child.name, locality.Name)
		}
		tree.priorities = append(tree.priorities, child)
	}
	tree.Config = encode(tree.priorities, Settings{})
	return tree
}

// titleOf returns what people call the priority with these members: its localities.
func titleOf(members []member) string {
	var localities []string
	for _, m := range members {
		localities = append(localities, m.locality)
	}
	return strings.Join(localities, ", ")
}

// appendEndpoints appends the healthy endpoints of locality.
func (t *Translator) appendEndpoints(to []resolver.Endpoint, locality Locality, path ...string) []resolver.Endpoint {
	for e := range locality.Endpoints() {
		if !e.Healthy() {
			continue
		}
		var endpoint resolver.Endpoint
		for _, address := range addressesOf(e.lb) {
			dial, _ := dialable(address)
			a := resolver.Address{Addr: dial}
			if t.TrustNames {
				a.ServerName = e.lb.GetEndpoint().GetHostname()
			}
			endpoint.Addresses = append(endpoint.Addresses, a)
		}
		endpoint = weight.Set(endpoint, weight.EndpointInfo{Weight: e.Weight()})
		to = append(to, hierarchy.Set(endpoint, path...))
	}
	return to
}

// addressesOf returns all addresses of an endpoint, the main one first.
func addressesOf(lb *endpointv3.LbEndpoint) []*corev3.Address {
	addresses := []*corev3.Address{lb.GetEndpoint().GetAddress()}
	for _, additional := range lb.GetEndpoint().GetAdditionalAddresses() {
		addresses = append(addresses, additional.GetAddress())
	}
	return addresses
}

// weightOf returns the weight of an endpoint, 1 where none is given (gRFC A34).
func weightOf(lb *endpointv3.LbEndpoint) uint32 {
	if w := lb.GetLoadBalancingWeight(); w != nil {
		return w.GetValue()
	}
	return 1
}

// dropCategories returns the drops of cluster, each capped at all requests.
func dropCategories(cluster *endpointv3.ClusterLoadAssignment) []lbconfig.DropCategory {
	var drops []lbconfig.DropCategory
	for _, drop := range cluster.GetPolicy().GetDropOverloads() {
		rate := min(dropRate(drop), lbconfig.Million)
		drops = append(drops, lbconfig.DropCategory{Category: drop.GetCategory(), RequestsPerMillion: uint32(rate)})
	}
	return drops
}

// dropRate returns how many of a million requests drop asks for. It may be more than a
// million.
func dropRate(drop *endpointv3.ClusterLoadAssignment_Policy_DropOverload) uint64 {
	percentage := drop.GetDropPercentage()
	rate := uint64(percentage.GetNumerator())
	switch percentage.GetDenominator() {
	case typev3.FractionalPercent_HUNDRED:
		rate *= lbconfig.Million / 100
	case typev3.FractionalPercent_TEN_THOUSAND:
		rate *= lbconfig.Million / 10_000
	case typev3.FractionalPercent_MILLION:
	}
	return rate
}
