package clusterfile

import (
	"errors"
	"fmt"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/understudy-lb/understudy/internal/cds"
	"github.com/understudy-lb/understudy/internal/topology"
)

// Mechanism is one of those that a cluster in a file stands for (gRFC A37). One of Endpoints,
// Host, Service and Err is set.
type Mechanism struct {
	// Cluster is the name of the cluster that is no aggregate.
	Cluster string
	// Endpoints are those of a cluster that lists them. Names tells that addresses of
	// theirs which are names stand for all addresses of the name.
	Endpoints *endpointv3.ClusterLoadAssignment
	Names     bool
	// Host is the name, with a port, whose addresses are the endpoints.
	Host string
	// Service is what the endpoints are called that come by EDS.
	Service string
	// Err says why there are no endpoints, with the place in the file.
	Err error
	// OutlierDetection is what the cluster says of it, nil for nothing.
	OutlierDetection *topology.OutlierDetection
}

// Mechanisms returns what a cluster of the list stands for, at least one part, as a channel to it
// has them, and notes with their places on what has no effect.
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
