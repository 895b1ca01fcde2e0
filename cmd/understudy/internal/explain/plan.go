package explain

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
)

// plan is the policy tree for the discovery mechanisms of a cluster, with further details.
type plan struct {
	tree          topology.Tree
	names         map[string]string
	failures      map[string]string // why children of the priority policy have no endpoints
	clusters      []string
	firstPriority []int
	notes         []string // fields and options that have no effect
}

func newPlan(mechanisms []cds.Mechanism, settings topology.Settings) (plan, error) {
	p := plan{names: make(map[string]string), failures: make(map[string]string)}
	var trees []topology.Tree
	for i, mechanism := range mechanisms {
		tree, notes, err := treeOf(i, mechanism, settings, len(mechanisms) > 1)
		if err != nil {
			return plan{}, err
		}
		p.notes = append(p.notes, notes...)
		if mechanism.Err == nil && mechanism.Cluster.OutlierDetection != nil {
			tree = tree.With(false, mechanism.Cluster.OutlierDetection)
		}
		p.firstPriority = append(p.firstPriority, len(p.clusters))
		for _, priority := range tree.Priorities {
			p.names[priority.Child] = priority.Name
			if len(mechanisms) > 1 {
				p.names[priority.Child] = mechanism.Name
			}
			if mechanism.Err != nil {
				p.failures[priority.Child] = mechanism.Err.Error()
			}
			p.clusters = append(p.clusters, mechanism.Name)
		}
		trees = append(trees, tree)
	}
	policies, err := topology.NewPolicies(settings)
	if err != nil {
		return plan{}, err
	}
	p.tree = policies.Join(trees...)
	if near := settings.Near(); !near.Place.Serves(near.Prefer) {
		p.notes = append(p.notes, "prefer="+near.Prefer+" has no effect: the location of the client is unknown; set it with --zone, for example")
	}
	if p.tree.IsSubset() && settings.SubsetSeed == 0 {
		p.notes = append(p.notes, fmt.Sprintf("subset=%d: each channel chooses its endpoints at random, so other channels may use different ones; subsetSeed fixes the choice", settings.Subset))
	}
	if policy := settings.EndpointPolicy; policy.IgnoresWeights() && !policy.IsPickFirst() {
		name, _ := policy.Split()
		p.notes = append(p.notes, "the shares of endpoints are by weight: "+name+" decides otherwise")
	}
	return p, nil
}

// treeOf returns the policy tree of the mechanism with index i, and notes about fields that have no
// effect. It stores i in the attributes of each address.
func treeOf(i int, mechanism cds.Mechanism, settings topology.Settings, isAggregate bool) (tree topology.Tree, notes []string, err error) {
	name := ""
	if isAggregate {
		name = fmt.Sprint("mechanism", i)
	}
	if endpoints := endpointsIn(mechanism); endpoints == nil {
		var standIn []resolver.Endpoint
		if address, _ := placeholder(mechanism); address != "" {
			standIn = []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: address}}}}
		}
		tree = topology.Plain(name+"/", "", standIn)
	} else {
		answer, unusedFields, err := messages.Read(endpoints)
		if err != nil {
			return tree, nil, err
		}
		if answer.Why != "" {
			notes = append(notes, answer.Why+": no calls can be made")
		}
		for _, note := range unusedFields {
			notes = append(notes, note.Text)
		}
		translator := topology.Translator{Name: name, Near: settings.Near()}
		if missing := translator.Near.MissingFields(&answer); missing != "" {
			notes = append(notes, "prefer="+translator.Near.Prefer+" has no effect: the source gives no "+missing+" for any endpoint")
		}
		if tree, err = translator.Translate(&answer); err != nil {
			return tree, nil, err
		}
	}
	for j, e := range tree.Endpoints {
		tree.Endpoints[j].Addresses = slices.Clone(e.Addresses)
		for k := range e.Addresses {
			tree.Endpoints[j].Addresses[k] = withMechanism(e.Addresses[k], i)
		}
	}
	return tree, notes, nil
}

// mechanismAddress is an address of one discovery mechanism. Several mechanisms may have the same
// address.
type mechanismAddress struct {
	mechanism int
	addr      string // the address in the form that gRPC dials
}

type mechanismKey struct{}

func withMechanism(address resolver.Address, mechanism int) resolver.Address {
	address.Attributes = address.Attributes.WithValue(mechanismKey{}, mechanism)
	return address
}

func mechanismAddressOf(address resolver.Address) mechanismAddress {
	mechanism, _ := address.Attributes.Value(mechanismKey{}).(int)
	return mechanismAddress{mechanism, address.Addr}
}

// placeholder returns a placeholder for endpoints that only a channel looks up, such as those of a
// DNS name, and describes these endpoints. Both results are "" if the mechanism lists its
// endpoints.
func placeholder(mechanism cds.Mechanism) (address, description string) {
	switch {
	case mechanism.Err != nil:
	case mechanism.Cluster.Kind == cds.LogicalDNS:
		return mechanism.Cluster.Host, allAddressesOfName
	case mechanism.Cluster.Kind == cds.EDS:
		return "eds:" + mechanism.Cluster.Service, "the endpoints of " + mechanism.Cluster.Service + " by EDS"
	}
	return "", ""
}

// endpointsIn returns the endpoints that the mechanism lists, or nil.
func endpointsIn(mechanism cds.Mechanism) *endpointv3.ClusterLoadAssignment {
	if mechanism.Err != nil {
		return nil
	}
	return mechanism.Cluster.Assignment
}

const allAddressesOfName = "all addresses of the name"

func isDNSName(address string) bool {
	if strings.HasPrefix(address, "unix:") {
		return false
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = netip.ParseAddr(host)
	return err != nil
}

// add adds the endpoints and drops of the mechanism with index i. first is the number of the
// mechanism's highest priority.
func (r *Result) add(i int, mechanism cds.Mechanism, first int, isAggregate bool) {
	cluster := ""
	if isAggregate {
		cluster = mechanism.Name
	}
	if address, description := placeholder(mechanism); address != "" {
		r.Endpoints = append(r.Endpoints, Endpoint{Cluster: cluster, Address: address, StandsFor: description, Locality: topology.NoLocality, LocalityWeight: 1, Priority: uint32(first), Weight: 1, mechanism: i})
	}
	for _, e := range endpointsOf(endpointsIn(mechanism)) {
		e.Cluster, e.mechanism = cluster, i
		e.Priority += uint32(first)
		if mechanism.Cluster.Kind == cds.StrictDNS && isDNSName(e.Address) {
			e.StandsFor = allAddressesOfName
		}
		r.Endpoints = append(r.Endpoints, e)
	}
	for _, d := range messages.Drops(endpointsIn(mechanism)) {
		r.Drops = append(r.Drops, Drop{d.Category, d.PerMillion, cluster})
	}
}

func endpointsOf(cluster *endpointv3.ClusterLoadAssignment) (list []Endpoint) {
	for _, locality := range cluster.GetEndpoints() {
		for _, lbEndpoint := range locality.GetLbEndpoints() {
			addresses := messages.Addresses(lbEndpoint)
			if len(addresses) == 0 {
				addresses = []string{"no address"}
			}
			e := Endpoint{
				Address:             addresses[0],
				AdditionalAddresses: addresses[1:],
				Locality:            messages.LocalityName(locality.GetLocality()),
				LocalityWeight:      locality.GetLoadBalancingWeight().GetValue(),
				Priority:            locality.GetPriority(),
				Weight:              messages.Weight(lbEndpoint),
			}
			if !messages.Healthy(lbEndpoint) {
				e.Health = lbEndpoint.GetHealthStatus().String()
			}
			list = append(list, e)
		}
	}
	return list
}
