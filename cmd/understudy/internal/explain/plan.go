package explain

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/clusterfile"
	"github.com/understudy-lb/understudy/internal/envoy"
	"github.com/understudy-lb/understudy/internal/topology"
)

// plan is the policy tree for the discovery mechanisms of a cluster, with further details.
type plan struct {
	tree     topology.Tree
	config   json.RawMessage
	names    map[string]string
	failures map[string]string // why children of the priority policy have no endpoints
	clusters []string
	first    []int
	notes    []string // notes about fields and options without effect
}

func planOf(parts []clusterfile.Mechanism, settings topology.Settings) (plan, error) {
	p := plan{names: make(map[string]string), failures: make(map[string]string)}
	var trees []topology.Tree
	for i, part := range parts {
		tree, notes, err := treeOf(i, part, settings, len(parts) > 1)
		if err != nil {
			return plan{}, err
		}
		p.notes = append(p.notes, notes...)
		if part.OutlierDetection != nil {
			tree = tree.WithOutlierDetection(part.OutlierDetection)
		}
		p.first = append(p.first, len(p.clusters))
		for _, priority := range tree.Priorities() {
			p.names[priority.Child] = priority.Name
			if len(parts) > 1 {
				p.names[priority.Child] = part.Cluster
			}
			if part.Err != nil {
				p.failures[priority.Child] = part.Err.Error()
			}
			p.clusters = append(p.clusters, part.Cluster)
		}
		trees = append(trees, tree)
	}
	p.tree = topology.Join(settings, trees...)
	p.config = p.tree.Config()
	if near := settings.Near(); !near.Place.Serves(near.Prefer) {
		p.notes = append(p.notes, "prefer="+near.Prefer+" has no effect: nothing says where the client runs, such as --zone")
	}
	if p.tree.IsPart() && settings.SubsetSeed == 0 {
		p.notes = append(p.notes, fmt.Sprintf("subset=%d: each channel draws endpoints of its own, so others connect others than these; subsetSeed chooses some", settings.Subset))
	}
	return p, nil
}

// treeOf returns the policy tree of the mechanism with index i, and notes about fields without
// effect. It stores i in the attributes of each address.
func treeOf(i int, part clusterfile.Mechanism, settings topology.Settings, several bool) (tree topology.Tree, notes []string, err error) {
	name := ""
	if several {
		name = fmt.Sprint("part", i)
	}
	if part.Endpoints == nil {
		target := topology.Target{Name: name + "/"}
		if address, _ := placeholder(part); address != "" {
			target.Endpoints = []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: address}}}}
		}
		tree = topology.Targets([]topology.Target{target})
	} else {
		answer, unused, err := envoy.Read(part.Endpoints)
		if err != nil {
			return tree, nil, err
		}
		if answer.Why != "" {
			notes = append(notes, answer.Why+": no call can be made")
		}
		for _, note := range unused {
			notes = append(notes, note.Text)
		}
		translator := topology.Translator{Name: name, Near: settings.Near()}
		if lacks := translator.Near.Lacks(&answer); lacks != "" {
			notes = append(notes, "prefer="+translator.Near.Prefer+" has no effect: the source says no "+lacks+" of any endpoint")
		}
		if tree, err = translator.Translate(&answer); err != nil {
			return tree, nil, err
		}
	}
	for j, e := range tree.Endpoints {
		tree.Endpoints[j].Addresses = slices.Clone(e.Addresses)
		for k := range e.Addresses {
			tree.Endpoints[j].Addresses[k] = withPart(e.Addresses[k], i)
		}
	}
	return tree, notes, nil
}

// partAddress is an address of one discovery mechanism. Several mechanisms may have the same
// address.
type partAddress struct {
	part int
	dial string // the address in the form that gRPC dials
}

type partKey struct{}

func withPart(address resolver.Address, part int) resolver.Address {
	address.Attributes = address.Attributes.WithValue(partKey{}, part)
	return address
}

func partAddressOf(address resolver.Address) partAddress {
	part, _ := address.Attributes.Value(partKey{}).(int)
	return partAddress{part, address.Addr}
}

// placeholder returns a placeholder for endpoints that only a channel looks up, such as those of a
// DNS name, and describes these endpoints. Both results are "" if the mechanism lists its
// endpoints.
func placeholder(part clusterfile.Mechanism) (address, of string) {
	switch {
	case part.Host != "":
		return part.Host, ofName
	case part.Service != "":
		return "eds:" + part.Service, "the endpoints of " + part.Service + " by EDS"
	}
	return "", ""
}

const ofName = "all addresses of the name"

func isName(address string) bool {
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

// add adds the endpoints and drops of the mechanism with index i. first is its highest priority.
func (r *Result) add(i int, part clusterfile.Mechanism, first int, several bool) {
	cluster := ""
	if several {
		cluster = part.Cluster
	}
	if address, of := placeholder(part); address != "" {
		r.Endpoints = append(r.Endpoints, Endpoint{Cluster: cluster, Address: address, StandsFor: of, Locality: topology.Nowhere, LocalityWeight: 1, Priority: uint32(first), Weight: 1, part: i})
	}
	for _, e := range endpointsOf(part.Endpoints) {
		e.Cluster, e.part = cluster, i
		e.Priority += uint32(first)
		if part.Names && isName(e.Address) {
			e.StandsFor = ofName
		}
		r.Endpoints = append(r.Endpoints, e)
	}
	for _, d := range envoy.Drops(part.Endpoints) {
		r.Drops = append(r.Drops, Drop{d.Category, d.PerMillion, cluster})
	}
}

func endpointsOf(cluster *endpointv3.ClusterLoadAssignment) (list []Endpoint) {
	for _, locality := range cluster.GetEndpoints() {
		for _, lb := range locality.GetLbEndpoints() {
			addresses := envoy.Addresses(lb)
			if len(addresses) == 0 {
				addresses = []string{"no address"}
			}
			e := Endpoint{
				Address:             addresses[0],
				AdditionalAddresses: addresses[1:],
				Locality:            envoy.LocalityName(locality.GetLocality()),
				LocalityWeight:      locality.GetLoadBalancingWeight().GetValue(),
				Priority:            locality.GetPriority(),
				Weight:              envoy.Weight(lb),
			}
			if !envoy.Healthy(lb) {
				e.Health = lb.GetHealthStatus().String()
			}
			list = append(list, e)
		}
	}
	return list
}
