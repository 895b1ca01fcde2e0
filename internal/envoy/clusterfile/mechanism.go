package clusterfile

import (
	"errors"
	"fmt"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/envoy/cds"
)

// Mechanism is a discovery mechanism (gRFC A37). Exactly one of Endpoints, Host, Service and Err is
// set.
type Mechanism struct {
	Cluster string
	// Endpoints are the endpoints that the file lists. If Names is true, an endpoint with a host name
	// represents all addresses of the host.
	Endpoints *endpointv3.ClusterLoadAssignment
	Names     bool
	// Host is a host:port to look up in DNS.
	Host             string
	Service          string
	Err              error
	OutlierDetection *topology.OutlierDetection
}

// Mechanisms returns the discovery mechanisms of a cluster, and notes about ignored fields. There
// is at least one mechanism unless err is set.
func (d *Document) Mechanisms(cluster string) (mechanisms []Mechanism, notes []string, err error) {
	if k := d.Find(cluster); k.Err != nil {
		return nil, nil, fmt.Errorf("%s: cluster %s: %w", d.path, quote(cluster), k.Err)
	}
	g := cds.Resolve(cluster, d.Find)
	for _, e := range g.List {
		if e.Err != nil {
			mechanisms = append(mechanisms, Mechanism{Cluster: e.Name, Err: d.ExplainEntry(e)})
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
		mechanisms = append(mechanisms, p)
	}
	if located, ok := errors.AsType[*Error](d.Notes(g.Asked)); ok {
		for _, p := range located.Problems {
			notes = append(notes, fmt.Sprintf("%s:%d:%d: %s", located.Path, p.Line, p.Column, p.Text))
		}
	}
	return mechanisms, notes, nil
}
