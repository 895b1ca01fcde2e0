package clusterfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	yaml "go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Parse decodes the cluster or clusters in data. Its error is a *messages.Invalid. A cluster may still
// be invalid: then Find returns its error.
func Parse(path string, data []byte) (*Document, error) {
	doc, _, err := parse(path, data)
	return doc, err
}

// parse also returns the decoder, which has the positions of everything. The nodes take forty times
// as much memory as the file, so that a Document only has the positions that it needs.
func parse(path string, data []byte) (*Document, *decoder, error) {
	d := &decoder{path: path}
	if err := d.parseYAML(data); err != nil {
		return nil, nil, err
	}
	doc := &Document{path: path, clusters: make(map[string]*cluster)}
	list := d.decode(doc)
	if err := d.problems.Err(); err != nil {
		return nil, nil, err
	}
	for i, c := range list {
		doc.add(c.GetName(), d.readCluster(fmt.Sprintf("clusters[%d]", i), c))
	}
	return doc, d, nil
}

// parseYAML sets the root.
func (d *decoder) parseYAML(data []byte) error {
	documents := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	if err := documents.Decode(&first); err != nil && !errors.Is(err, io.EOF) {
		return d.syntaxError(data, err)
	}
	if first.Kind != yaml.DocumentNode || isNull(first.Content[0]) {
		d.add(&first, "the file is empty, want a ClusterLoadAssignment, or clusters")
		return d.problems.Err()
	}
	switch err := documents.Decode(&second); {
	case err == nil:
		d.add(&second, "a second document begins here, want one document in a file")
	case !errors.Is(err, io.EOF):
		return d.syntaxError(data, err)
	case d.prune(first.Content[0]):
		before := len(d.problems.Problems)
		if d.root = d.unwrap(first.Content[0]); len(d.problems.Problems) == before {
			return nil
		}
	}
	return d.problems.Err()
}

func (d *decoder) decode(doc *Document) []*clusterv3.Cluster {
	list := []*clusterv3.Cluster{}
	lines := make(map[string]int)
	for i := 0; i+1 < len(d.root.Content); i += 2 {
		key, value := d.root.Content[i], d.root.Content[i+1]
		if key.Value != "clusters" {
			d.add(key, "%s is given together with clusters, want nothing else in such a file", printable.Quote(key.Value))
			continue
		}
		if !d.checkKind(value, yaml.SequenceNode) {
			continue
		}
		for _, node := range value.Content {
			c := new(clusterv3.Cluster)
			d.message(node, c.ProtoReflect())
			if d.isSingle {
				c.Name = cmp.Or(c.GetName(), strings.ToValidUTF8(NameOf(d.path), "\uFFFD")) // a path need not be valid UTF-8
			}
			if assignment := c.GetLoadAssignment(); assignment != nil {
				setDefaults(assignment, cmp.Or(c.GetName(), "unnamed")) // the missing name is reported for the cluster
			}
			list = append(list, c)
			at := node
			if _, name := entry(node, "name"); name != nil {
				at = name
			}
			if line := lines[c.GetName()]; line > 0 {
				d.add(at, "cluster %s is already given on line %d", printable.Quote(c.GetName()), line)
			}
			lines[c.GetName()] = at.Line
		}
	}
	if len(list) == 0 && len(d.problems.Problems) == 0 {
		d.add(d.root, "the list of clusters is empty")
	}
	if d.isSingle {
		doc.Endpoints = list[0].GetLoadAssignment()
	} else {
		doc.Clusters = list
	}
	return list
}

// setDefaults sets fields that a file may omit but a control plane must not. If no locality of a
// priority has a weight, all localities of the priority get weight 1.
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

func (d *decoder) readCluster(path string, c *clusterv3.Cluster) *cluster {
	read, err := cds.Read(c)
	if err != nil {
		return &cluster{Known: cds.Known{Err: d.located(path, err)}}
	}
	_ = d.located(path, &messages.Invalid{Problems: read.Notes})
	k := &cluster{Known: cds.Known{Cluster: read}}
	if read.Assignment != nil {
		k.NoEndpoints = d.checkNotEmpty(path+".load_assignment", read)
	}
	for i := range read.Children {
		k.references = append(k.references, d.locate(fmt.Sprintf("%s.cluster_type.typed_config.clusters[%d]", path, i)))
	}
	return k
}

// checkNotEmpty returns an error if a cluster in a file lists no endpoint at all. Whoever
// generates such a file has usually lost the list. A management server may send an empty assignment,
// because EDS defines it; a file needs none, because its endpoints can be DRAINING. checkNotEmpty
// also adds positions to the notes about the endpoints.
func (d *decoder) checkNotEmpty(path string, c *cds.Cluster) error {
	_ = d.located(path, &messages.Invalid{Problems: c.AnswerNotes})
	c.Answer.Notes = messages.Texts(c.AnswerNotes)
	for _, locality := range c.Assignment.GetEndpoints() {
		if len(locality.GetLbEndpoints()) > 0 {
			return nil
		}
	}
	var empty messages.Invalid
	empty.Add("endpoints", "no endpoint is listed, want at least one (to take all out of use, set their health_status to DRAINING)")
	return d.located(path, &empty)
}

// NameOf returns the name of the file at path without its extension.
func NameOf(path string) string {
	base := filepath.Base(path)
	return cmp.Or(strings.TrimSuffix(base, filepath.Ext(base)), base)
}

// positionOf returns the position of a node. The parser gives no position for some nodes, such as
// empty ones. positionOf then returns line 1 and column 1.
func (d *decoder) positionOf(node *yaml.Node) messages.Position {
	return messages.Position{File: d.path, Line: max(node.Line, 1), Column: max(node.Column, 1)}
}

// locate returns the position of the field with the given path, such as
// "endpoints[2].lb_endpoints[0].load_balancing_weight". For a scalar, this is the position of the
// value, and otherwise the position of the key. If the field does not exist, locate returns the
// position of its nearest existing ancestor.
func (d *decoder) locate(path string) messages.Position {
	node, found := d.root, d.root
	for step := range strings.SplitSeq(path, ".") {
		name, index, indexed := strings.Cut(strings.TrimSuffix(step, "]"), "[")
		key, value := entry(node, name)
		if value == nil {
			break
		}
		node, found = value, key
		if value.Kind == yaml.ScalarNode {
			found = value
		}
		if !indexed {
			continue
		}
		i, err := strconv.Atoi(index)
		if err != nil || node.Kind != yaml.SequenceNode || i >= len(node.Content) {
			break
		}
		node, found = node.Content[i], node.Content[i]
	}
	return d.positionOf(found)
}

// entry returns the key and the value of the field with the given name in snake case. In the file,
// the key may be written in snake case or in camel case.
func entry(node *yaml.Node, name string) (key, value *yaml.Node) {
	if node.Kind != yaml.MappingNode {
		return nil, nil
	}
	plain := strings.ReplaceAll(name, "_", "")
	for i := 0; i+1 < len(node.Content); i += 2 {
		if strings.EqualFold(strings.ReplaceAll(node.Content[i].Value, "_", ""), plain) {
			return node.Content[i], node.Content[i+1]
		}
	}
	return nil, nil
}

// located adds positions to the problems of an *messages.Invalid, whose paths are relative to the
// given one.
func (d *decoder) located(path string, err error) error {
	invalid, ok := errors.AsType[*messages.Invalid](err)
	if !ok {
		return err
	}
	for i, p := range invalid.Problems {
		invalid.Problems[i].At = d.locate(p.Within(path).Path)
	}
	return invalid.Err()
}
