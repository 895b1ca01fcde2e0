package clusterfile

import (
	"errors"
	"fmt"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/understudy-lb/understudy/internal/cds"
	"github.com/understudy-lb/understudy/internal/topology"
)

// Mechanism is a discovery mechanism of a cluster in a file (gRFC A37). Exactly one of Endpoints,
// Host, Service and Err is set.
type Mechanism struct {
	// Cluster is the name of the cluster, which is not an aggregate.
	Cluster string
	// Endpoints are the endpoints that the cluster lists. If Names is set, addresses that are host
	// names represent all their IP addresses.
	Endpoints *endpointv3.ClusterLoadAssignment
	Names     bool
	// Host is the host:port that is resolved through DNS.
	Host string
	// Service is the name of the ClusterLoadAssignment that is received over EDS.
	Service string
	// Err is the reason why there are no endpoints, with the position in the file.
	Err error
	// OutlierDetection is nil if the cluster does not configure it.
	OutlierDetection *topology.OutlierDetection
}

// Mechanisms returns the discovery mechanisms of a cluster, at least one, as a channel uses them.
// notes lists the ignored fields with their positions.
func (d *Document) Mechanisms(cluster string) (parts []Mechanism, notes []string, err error) {
	if k := d.Find(cluster); k.Err != nil {
		return nil, nil, fmt.Errorf("%s: cluster %s: %w", d.path, show(cluster), k.Err)
	}
	g := cds.Resolve(cluster, d.Find)
	for _, e := range g.List {
		if e.Err != nil {
			parts = append(parts, Mechanism{Cluster: e.Name, Err: d.ExplainEntry(e)})
			continue
		}
		c := g.Known[e.Name].Cluster
		p := Mechanism{Cluster: e.Name, OutlierDetection: c.OutlierDetection}
		switch c.Kind {
		case cds.EDS:
			p.Service = c.Service
		case cds.LogicalDNS:
			p.Host = c.Host
		default:
			p.Endpoints, p.Names = c.Assignment, c.Kind == cds.StrictDNS
		}
		parts = append(parts, p)
	}
	if located, ok := errors.AsType[*Error](d.Notes(g.Asked)); ok {
		for _, p := range located.Problems {
			notes = append(notes, fmt.Sprintf("%s:%d:%d: %s", located.Path, p.Line, p.Column, p.Text))
		}
	}
	return parts, notes, nil
}
