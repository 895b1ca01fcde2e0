package clusterfile

import (
	"fmt"
	"net/url"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
)

// Document is the content of a well-formed file. It must not be modified.
type Document struct {
	// Endpoints is nil if the file contains a list of clusters.
	Endpoints *endpointv3.ClusterLoadAssignment
	// Clusters is nil if the file contains no list of clusters.
	Clusters []*clusterv3.Cluster

	path     string
	names    []string // of the clusters, in the order of the file
	clusters map[string]*cluster
}

// cluster is one of the clusters in a file. Its errors and notes have positions.
type cluster struct {
	cds.Known
	references []messages.Position // of the children of an aggregate
}

func (d *Document) add(name string, c *cluster) {
	d.names, d.clusters[name] = append(d.names, name), c
}

// Names returns the names of the clusters, in the order of the file.
func (d *Document) Names() []string { return d.names }

// Answer returns the answer of a file without a list of clusters, or what is wrong with it.
func (d *Document) Answer() (discovery.Answer, error) {
	c := d.clusters[d.names[0]]
	if c.Cluster == nil {
		return discovery.Answer{}, c.Err
	}
	return c.Cluster.Answer, c.NoEndpoints
}

// Choose returns the name of the cluster to use. requested is the cluster that the target names, or
// "" if it names none.
func (d *Document) Choose(requested string) (string, error) {
	switch {
	case d.Clusters == nil && requested != "" && requested != d.names[0]:
		return "", fmt.Errorf("%s: holds the endpoints of cluster %s, not of %s", d.path, quote(d.names[0]), quote(requested))
	case d.Clusters == nil || requested != "":
		return requested, nil
	case len(d.names) == 1:
		return d.names[0], nil
	}
	return "", fmt.Errorf("%s: holds %d clusters, %s: want one of them in the target, as in ?cluster=%s", d.path, len(d.names), d.quotedNames(), url.QueryEscape(truncate(d.names[0])))
}

func (d *Document) quotedNames() string {
	const limit = 10
	var names []string
	for _, name := range d.names[:min(len(d.names), limit)] {
		names = append(names, quote(name))
	}
	if len(d.names) > limit {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

// Find returns the state of a cluster. All callers share the result.
func (d *Document) Find(name string) cds.Known {
	if c := d.clusters[name]; c != nil {
		return c.Known
	}
	return cds.Known{Err: fmt.Errorf("the file has no such cluster, want one of %s", d.quotedNames())}
}

// Check returns why a cluster cannot be used, or nil.
func (d *Document) Check(name string) error {
	if known := d.Find(name); known.Err != nil {
		return fmt.Errorf("%s: cluster %s: %w", d.path, quote(name), known.Err)
	}
	return nil
}

// Resolve returns the discovery mechanisms of a cluster, whose errors have positions, and notes
// about the fields of its clusters that have no effect, or nil.
func (d *Document) Resolve(name string) (g *cds.Graph, notes error) {
	g = cds.Resolve(name, d.Find)
	for i, e := range g.List {
		at, ok := d.reference(e)
		switch c := d.clusters[e.Name]; {
		case e.Err == nil || c != nil && c.Err != nil:
		case ok:
			g.List[i].Err = fmt.Errorf("%s:%d:%d: %w", d.path, at.Line, at.Column, e.Err)
		default:
			g.List[i].Err = fmt.Errorf("%s: %w", d.path, e.Err)
		}
	}
	var all messages.Invalid
	for _, name := range g.Asked {
		if c := g.Known[name].Cluster; c != nil {
			all.Merge("", &messages.Invalid{Problems: c.Notes})
		}
	}
	return g, all.Err()
}

// reference returns the position at which an aggregate refers to a mechanism's cluster.
func (d *Document) reference(e cds.Mechanism) (at messages.Position, ok bool) {
	if parent := d.clusters[e.Parent]; parent != nil && e.Index < len(parent.references) {
		return parent.references[e.Index], true
	}
	return at, false
}
