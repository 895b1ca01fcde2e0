package topology

import (
	"fmt"
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
	// Name is put before the names of the children, "NAME/child0" in place of
	// "child0", so that several mechanisms of a channel share none (see Join).
	Name string
	// TrustNames makes the hostname of an endpoint, where it has one, its server name: the
	// one that its certificate is verified against.
	TrustNames bool
	names      childNames
}

// Translate returns the tree over clusters in priority order: all priorities of the
// first, then those of the second, and so on. A nil cluster counts as empty, and so
// does one without localities; without any endpoints all calls fail. The clusters
// are not modified.
//
// Localities whose weight is unset or 0 get no traffic and are noted in the tree, as is
// what breaks Envoy's rules (those in its .proto files) where gRPC does not mind.
// Endpoints without a weight have 1. Those whose health status is neither UNKNOWN nor
// HEALTHY are left out.
//
// It returns an *Invalid, and forgets nothing of the update before, if gRPC's rules
// (gRFC A27 and what its clients agree on) are broken: an endpoint's weight of 0;
// weights of a priority's localities, or of a locality's endpoints, that sum past
// 4,294,967,295; an address twice in a cluster; a locality that is missing, or twice in
// a priority; a gap in the priorities; a healthy endpoint without an address that gRPC
// can dial; a drop of an unknown denominator; a cluster without a name. Whatever is in
// a locality that gets no traffic breaks none. With several clusters the paths of problems begin with the index,
// as in "[1].endpoints[0]".
func (t *Translator) Translate(clusters ...*endpointv3.ClusterLoadAssignment) (Tree, error) {
	var found, notes problems
	for i, cluster := range clusters {
		if cluster == nil {
			continue
		}
		prefix := ""
		if len(clusters) > 1 {
			prefix = fmt.Sprintf("[%d]", i)
		}
		check(cluster, prefix, &found)
		note(cluster, prefix, &notes)
	}
	if err := found.err(); err != nil {
		return Tree{}, err
	}
	var ranks []rank
	for _, cluster := range clusters {
		ranks = append(ranks, split(cluster)...)
	}
	tree := t.build(ranks)
	tree.Notes = notes.list
	if len(ranks) == 0 {
		tree.Empty = whyEmpty(clusters)
	}
	return tree, nil
}

// rank is one priority of one cluster.
type rank struct {
	cluster    *endpointv3.ClusterLoadAssignment
	localities []Locality // those with traffic, in the order given
}

// split returns the priorities of cluster, in which check found nothing.
func split(cluster *endpointv3.ClusterLoadAssignment) []rank {
	var ranks []rank
	for locality := range Localities(cluster) {
		if locality.Weight == 0 {
			continue
		}
		for int(locality.Priority) >= len(ranks) {
			ranks = append(ranks, rank{cluster: cluster})
		}
		r := &ranks[locality.Priority]
		r.localities = append(r.localities, locality)
	}
	return ranks
}

// addresses returns those of all endpoints, whatever their health: of each its first.
func (r rank) addresses() []string {
	var all []string
	for _, locality := range r.localities {
		for e := range locality.Endpoints() {
			address, _ := dialable(e.lb.GetEndpoint().GetAddress())
			all = append(all, address)
		}
	}
	return all
}

// build returns the tree over ranks and remembers its names.
func (t *Translator) build(ranks []rank) Tree {
	members := make([][]member, len(ranks))
	for i, r := range ranks {
		for _, locality := range r.localities {
			members[i] = append(members[i], member{r.cluster.GetClusterName(), locality.Name})
		}
	}
	children, names := t.names.assign(members, func(i int) []string { return ranks[i].addresses() })
	t.names = names
	prefix := ""
	if t.Name != "" {
		prefix = t.Name + "/"
	}

	var tree Tree
	groups := make([]group, 0, len(ranks))
	for i, r := range ranks {
		g := group{
			name:               prefix + children[i].name,
			title:              titleOf(members[i]),
			ignoreReresolution: true, // whoever wrote the addresses sends new ones unasked
			drops:              dropCategories(r.cluster),
			localities:         make(map[string]uint32, len(r.localities)),
		}
		for _, locality := range r.localities {
			g.localities[locality.Name] = locality.Weight
			tree.Endpoints = t.appendEndpoints(tree.Endpoints, locality, g.name, locality.Name)
		}
		groups = append(groups, g)
	}
	tree.groups = groups
	tree.Config = encode(groups, Settings{})
	return tree
}

// titleOf returns what people call the priority with members: its localities.
func titleOf(members []member) string {
	var localities []string
	for _, m := range members {
		localities = append(localities, m.locality)
	}
	return strings.Join(localities, ", ")
}

// appendEndpoints appends the endpoints of locality that may get traffic.
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

// dropRate returns how many of a million requests drop asks for, which may be more.
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
