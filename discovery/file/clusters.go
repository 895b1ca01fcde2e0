package file

import (
	"cmp"
	"fmt"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	yaml "go.yaml.in/yaml/v3"

	"github.com/understudy-lb/understudy/discovery/internal/cds"
	"github.com/understudy-lb/understudy/internal/core/clusters"
	"github.com/understudy-lb/understudy/topology"
)

// clusters reads a document with a list of clusters, and fills in what it may leave out.
func (d *decoder) clusters(root *yaml.Node) []*clusterv3.Cluster {
	list := []*clusterv3.Cluster{}
	first := make(map[string]*yaml.Node)
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Value != "clusters" || len(list) > 0 {
			d.add(key, "%s stands beside clusters, want nothing else in such a file", show(key.Value))
			continue
		}
		if !d.is(value, yaml.SequenceNode) {
			continue
		}
		for _, node := range value.Content {
			c := new(clusterv3.Cluster)
			d.message(node, c.ProtoReflect())
			if assignment := c.GetLoadAssignment(); assignment != nil {
				complete(assignment, cmp.Or(c.GetName(), "unnamed")) // which is complained of once
			}
			list = append(list, c)
			_, name := entry(node, "name")
			if name == nil {
				name = node
			}
			if before := first[c.GetName()]; before != nil {
				d.add(name, "cluster %s is given on line %d already", show(c.GetName()), before.Line)
			}
			first[c.GetName()] = name
		}
	}
	if len(list) == 0 && len(d.problems.Problems) == 0 {
		d.add(root, "the list of clusters is empty")
	}
	return list
}

// choose returns the name of the cluster that a target wants, which names none if wanted
// is "".
func (d *document) choose(wanted string) (string, error) {
	switch {
	case d.clusters == nil && wanted != "" && wanted != d.cluster.GetClusterName():
		return "", fmt.Errorf("%s: holds the endpoints of cluster %s, and not of %s", d.path, show(d.cluster.GetClusterName()), show(wanted))
	case d.clusters == nil || wanted != "":
		return wanted, nil
	case len(d.clusters) == 1:
		return d.clusters[0].GetName(), nil
	}
	return "", fmt.Errorf("%s: holds %d clusters, %s: want one of them in the target, as in ?cluster=%s", d.path, len(d.clusters), d.names(), d.clusters[0].GetName())
}

// names returns the names of the clusters, as far as they are worth reading.
func (d *document) names() string {
	const most = 10
	var names []string
	for i, c := range d.clusters {
		if i == most {
			names = append(names, "…")
			break
		}
		names = append(names, show(c.GetName()))
	}
	return strings.Join(names, ", ")
}

// find returns what is known of a cluster of the document, the same for all who ask.
func (d *document) find(name string) cds.Known {
	i, there := d.index[name]
	if !there {
		return cds.Known{Err: fmt.Errorf("the file has no such cluster, want one of %s", d.names())}
	}
	d.mu.Lock()
	known, done := d.read[name]
	d.mu.Unlock()
	if done {
		return known
	}
	read, err := cds.Read(d.clusters[i])
	known = cds.Known{Cluster: read}
	if err != nil {
		known = cds.Known{Err: d.explainWithin(fmt.Sprintf("clusters[%d]", i), err)}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.read[name] = known
	return known
}

// explainEndpoints is explain for the endpoints of a cluster, which need not be in the document.
func (d *document) explainEndpoints(name string, invalid *topology.Invalid) error {
	i, there := d.index[name]
	if !there {
		return invalid
	}
	return d.explainWithin(fmt.Sprintf("clusters[%d].load_assignment", i), invalid)
}

// explainWithin is explain for what is wrong with a part of the document.
func (d *document) explainWithin(prefix string, err error) error {
	invalid, ok := err.(*topology.Invalid) //nolint:errorlint // they are never wrapped
	if !ok {
		return err
	}
	within := &topology.Invalid{More: invalid.More}
	for _, p := range invalid.Problems {
		p.Path = strings.TrimSuffix(prefix+"."+p.Path, ".")
		within.Problems = append(within.Problems, p)
	}
	return d.explain(within)
}

// explainEntry returns the error of an entry in the list of a cluster, with the place of
// the name that leads nowhere, unless the error has a place.
func (d *document) explainEntry(e clusters.Entry) error {
	if _, there := d.index[e.Name]; there && d.find(e.Name).Err != nil {
		return e.Err
	}
	if line, column, ok := d.placeOfReference(e); ok {
		return fmt.Errorf("%s:%d:%d: %w", d.path, line, column, e.Err)
	}
	return fmt.Errorf("%s: %w", d.path, e.Err)
}

// placeOfReference returns where an aggregate names the cluster of an entry.
func (d *document) placeOfReference(e clusters.Entry) (line, column int, ok bool) {
	i, there := d.index[e.Parent]
	if there {
		line, column = locate(d.root(), fmt.Sprintf("clusters[%d].cluster_type.typed_config.clusters[%d]", i, e.Index))
	}
	return line, column, there
}

// notes returns what has no effect in these clusters, nil if nothing.
func (d *document) notes(names []string) error {
	notes := &topology.Invalid{}
	for _, name := range names {
		known := d.find(name)
		if known.Cluster == nil {
			continue
		}
		for _, p := range known.Cluster.Notes {
			p.Path = fmt.Sprintf("clusters[%d].%s", d.index[name], p.Path)
			notes.Problems = append(notes.Problems, p)
		}
	}
	if len(notes.Problems) == 0 {
		return nil
	}
	return d.explain(notes)
}
