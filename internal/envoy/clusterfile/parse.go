package clusterfile

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Parse decodes the cluster or clusters in data. Its error is a *messages.Invalid. Note that a
// cluster can still be invalid, in which case Find returns its error.
func Parse(path string, data []byte) (*Document, error) {
	doc, _, err := parse(path, data)
	return doc, err
}

// The decoder knows the position of everything, but its nodes take up forty times as much memory as
// the file. That's why a Document only gets the positions it needs.
func parse(path string, data []byte) (*Document, *decoder, error) {
	d := &decoder{path: path}
	root := d.parseYAML(data)
	if root != nil {
		d.unwrap(root)
	}
	doc := &Document{path: path, clusters: make(map[string]cds.Known), references: make(map[reference]messages.Position)}
	list := d.decode(doc)
	if err := d.problems.Err(); err != nil {
		return nil, nil, err
	}
	for i, c := range list {
		known := d.readCluster(d.resources[i], c)
		doc.names, doc.clusters[c.GetName()] = append(doc.names, c.GetName()), known
		if known.Cluster == nil {
			continue
		}
		for j, child := range slices.Backward(known.Cluster.Children) { // if there are several, the first one wins
			doc.references[reference{c.GetName(), child}] = d.locate(d.resources[i], fmt.Sprintf("cluster_type.typed_config.clusters[%d]", j))
		}
	}
	return doc, d, nil
}

func (d *decoder) decode(doc *Document) []*clusterv3.Cluster {
	list, lines := []*clusterv3.Cluster{}, make(map[string]int)
	for _, r := range d.resources {
		c := new(clusterv3.Cluster)
		if r.isAssignment {
			c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
			c.LoadAssignment = new(endpointv3.ClusterLoadAssignment)
			d.message(r.node, c.LoadAssignment.ProtoReflect())
			c.Name = c.LoadAssignment.GetClusterName()
		} else {
			d.message(r.node, c.ProtoReflect())
		}
		if d.isSingle {
			c.Name = cmp.Or(c.GetName(), strings.ToValidUTF8(NameOf(d.path), "\uFFFD")) // paths don't have to be valid UTF-8
			doc.Endpoints = c.GetLoadAssignment()
		}
		if assignment := c.GetLoadAssignment(); assignment != nil {
			setDefaults(assignment, cmp.Or(c.GetName(), "unnamed")) // don't complain about the missing name twice
		}
		at := d.locate(r, "name")
		if line, ok := lines[c.GetName()]; ok {
			d.problems.AddAt(at, "cluster %s is already given on line %d", printable.Quote(c.GetName()), line)
		}
		lines[c.GetName()] = at.Line
		list = append(list, c)
	}
	if !d.isSingle {
		doc.Clusters = list
	}
	return list
}

// setDefaults sets fields that are optional in a file but required from a control plane. If no
// locality in a priority has a weight, they all get weight 1.
func setDefaults(cluster *endpointv3.ClusterLoadAssignment, name string) {
	cluster.ClusterName = cmp.Or(cluster.GetClusterName(), name)
	weighted := make(map[uint32]bool)
	for _, locality := range cluster.GetEndpoints() {
		if locality.GetLoadBalancingWeight() != nil {
			weighted[locality.GetPriority()] = true
		}
	}
	for _, locality := range cluster.GetEndpoints() {
		if locality.GetLocality() == nil {
			locality.Locality = &corev3.Locality{}
		}
		if !weighted[locality.GetPriority()] {
			locality.LoadBalancingWeight = wrapperspb.UInt32(1)
		}
	}
}

func (d *decoder) readCluster(r resource, c *clusterv3.Cluster) (known cds.Known) {
	read, err := cds.Read(c)
	if invalid, ok := errors.AsType[*messages.Invalid](err); ok {
		d.locateAll(r, "", invalid.Problems)
		return cds.Known{Err: invalid.Err()}
	}
	d.locateAll(r, "", read.Notes)
	known.Cluster = read
	if read.Assignment != nil {
		d.locateAll(r, "load_assignment", read.AnswerNotes)
		read.Answer.Notes = messages.Texts(read.AnswerNotes)
		known.NoEndpoints = d.checkNotEmpty(r, read.Assignment)
	}
	return known
}

// checkNotEmpty returns an error if a cluster doesn't list any endpoints. That's usually a sign
// that whatever generates the file has lost its list. Note that EDS defines what an empty
// assignment from a management server means, but in a file there's no use for one, because all
// endpoints can be set to DRAINING instead.
func (d *decoder) checkNotEmpty(r resource, a *endpointv3.ClusterLoadAssignment) error {
	if slices.ContainsFunc(a.GetEndpoints(), func(l *endpointv3.LocalityLbEndpoints) bool { return len(l.GetLbEndpoints()) > 0 }) {
		return nil
	}
	var empty messages.Invalid
	empty.AddAt(d.locate(r, "load_assignment.endpoints"), "no endpoint is listed, want at least one (to take all out of use, set their health_status to DRAINING)")
	return empty.Err()
}

// NameOf returns the file name in path, without its extension.
func NameOf(path string) string {
	base := filepath.Base(path)
	return cmp.Or(strings.TrimSuffix(base, filepath.Ext(base)), base)
}

// The parser doesn't know the position of some nodes, such as empty ones. We use line 1, column 1
// for those.
func (d *decoder) positionOf(node *yaml.Node) messages.Position {
	return messages.Position{File: d.path, Line: max(node.Line, 1), Column: max(node.Column, 1)}
}

// locate returns the position of a field in a cluster, given its path, e.g.
// "load_assignment.endpoints[0].priority". For a scalar, that's the position of the value, and for
// everything else, that of the key. If there's no such field, we use its nearest ancestor.
func (d *decoder) locate(r resource, path string) messages.Position {
	if r.isAssignment {
		path = strings.TrimPrefix("cluster_"+path, "cluster_load_assignment.")
	}
	node, found := r.node, r.node
	for step := range strings.SplitSeq(path, ".") {
		name, index, _ := strings.Cut(strings.TrimSuffix(step, "]"), "[")
		key, value := entry(node, name)
		if value == nil {
			break
		}
		node, found = value, key
		if value.Kind == yaml.ScalarNode {
			found = value
		}
		if i, err := strconv.Atoi(index); err == nil {
			node, found = node.Content[i], node.Content[i]
		}
	}
	return d.positionOf(found)
}

// locateAll adds positions to problems. Their paths are relative to path.
func (d *decoder) locateAll(r resource, path string, problems []messages.Problem) {
	for i, p := range problems {
		problems[i].At = d.locate(r, p.Within(path).Path)
	}
}
