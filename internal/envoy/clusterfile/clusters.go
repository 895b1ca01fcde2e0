package clusterfile

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	yaml "go.yaml.in/yaml/v3"

	"github.com/understudy-lb/understudy/internal/core/clusters"
	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
)

func (d *decoder) decodeClusters(root *yaml.Node) []*clusterv3.Cluster {
	list := []*clusterv3.Cluster{}
	names := make(map[string]*yaml.Node)
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Value != "clusters" || len(list) > 0 {
			d.add(key, "%s is given together with clusters, want nothing else in such a file", quote(key.Value))
			continue
		}
		if !d.checkKind(value, yaml.SequenceNode) {
			continue
		}
		for _, node := range value.Content {
			c := new(clusterv3.Cluster)
			d.message(node, c.ProtoReflect())
			if assignment := c.GetLoadAssignment(); assignment != nil {
				setDefaults(assignment, cmp.Or(c.GetName(), "unnamed")) // the missing name is reported for the cluster
			}
			list = append(list, c)
			_, name := entry(node, "name")
			if name == nil {
				name = node
			}
			if previous := names[c.GetName()]; previous != nil {
				d.add(name, "cluster %s is already given on line %d", quote(c.GetName()), previous.Line)
			}
			names[c.GetName()] = name
		}
	}
	if len(list) == 0 && len(d.problems.Problems) == 0 {
		d.add(root, "the list of clusters is empty")
	}
	return list
}

// Choose returns the name of the cluster to use. requested is the cluster that the target names, or
// "" if it names none.
func (d *Document) Choose(requested string) (string, error) {
	switch {
	case d.Clusters == nil && requested != "" && requested != d.Endpoints.GetClusterName():
		return "", fmt.Errorf("%s: holds the endpoints of cluster %s, not of %s", d.path, quote(d.Endpoints.GetClusterName()), quote(requested))
	case d.Clusters == nil || requested != "":
		return requested, nil
	case len(d.Clusters) == 1:
		return d.Clusters[0].GetName(), nil
	}
	return "", fmt.Errorf("%s: holds %d clusters, %s: want one of them in the target, as in ?cluster=%s", d.path, len(d.Clusters), d.names(), url.QueryEscape(truncate(d.Clusters[0].GetName())))
}

func (d *Document) names() string {
	const limit = 10
	var names []string
	for i, c := range d.Clusters {
		if i == limit {
			names = append(names, "…")
			break
		}
		names = append(names, quote(c.GetName()))
	}
	return strings.Join(names, ", ")
}

// Find returns the state of a cluster. All callers share the result.
func (d *Document) Find(name string) cds.Known {
	i, ok := d.index[name]
	if !ok {
		return cds.Known{Err: fmt.Errorf("the file has no such cluster, want one of %s", d.names())}
	}
	d.mu.Lock()
	known, cached := d.parsed[name]
	d.mu.Unlock()
	if cached {
		return known
	}
	path := fmt.Sprintf("clusters[%d]", i)
	cluster, err := cds.Read(d.Clusters[i])
	known = cds.Known{Cluster: cluster}
	switch {
	case err != nil:
		known = cds.Known{Err: d.explainWithin(path, err)}
	case cluster.Assignment != nil:
		known.NoEndpoints = d.checkNotEmpty(path+".load_assignment.endpoints", cluster.Assignment)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parsed[name] = known
	return known
}

// ExplainEndpoints adds positions to problems in the endpoints of a cluster. The paths of the
// problems must be relative to the cluster's load_assignment.
func (d *Document) ExplainEndpoints(name string, invalid *messages.Invalid) error {
	i, there := d.index[name]
	if !there {
		return invalid
	}
	return d.explainWithin(fmt.Sprintf("clusters[%d].load_assignment", i), invalid)
}

func (d *Document) explainWithin(prefix string, err error) error {
	invalid, ok := err.(*messages.Invalid) //nolint:errorlint // the error is never wrapped
	if !ok {
		return err
	}
	prefixed := &messages.Invalid{More: invalid.More}
	for _, p := range invalid.Problems {
		prefixed.Problems = append(prefixed.Problems, p.Within(prefix))
	}
	return d.withPositions(prefixed)
}

// ExplainEntry returns the error of an entry with a position. If the error has no position yet, it
// adds the position at which an aggregate refers to the cluster of the entry.
func (d *Document) ExplainEntry(e clusters.Entry) error {
	if _, there := d.index[e.Name]; there && d.Find(e.Name).Err != nil {
		return e.Err
	}
	if line, column, ok := d.positionOfReference(e); ok {
		return fmt.Errorf("%s:%d:%d: %w", d.path, line, column, e.Err)
	}
	return fmt.Errorf("%s: %w", d.path, e.Err)
}

// positionOfReference returns the position at which an aggregate refers to the cluster of an entry.
func (d *Document) positionOfReference(e clusters.Entry) (line, column int, ok bool) {
	i, there := d.index[e.Parent]
	if there {
		line, column = locate(d.root(), fmt.Sprintf("clusters[%d].cluster_type.typed_config.clusters[%d]", i, e.Index))
	}
	return line, column, there
}

// Notes returns notes about the fields of the given clusters that have no effect, or nil if there
// are none.
func (d *Document) Notes(names []string) error {
	notes := &messages.Invalid{}
	for _, name := range names {
		known := d.Find(name)
		if known.Cluster == nil {
			continue
		}
		for _, p := range known.Cluster.Notes {
			notes.Problems = append(notes.Problems, p.Within(fmt.Sprintf("clusters[%d]", d.index[name])))
		}
	}
	return d.withPositions(notes.Err())
}
