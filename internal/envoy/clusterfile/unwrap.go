package clusterfile

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	yaml "go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/internal/envoy/cds"
)

var (
	clusterName    = proto.MessageName(&clusterv3.Cluster{})
	assignmentName = proto.MessageName(&endpointv3.ClusterLoadAssignment{})
	responseFields = (&discoveryv3.DiscoveryResponse{}).ProtoReflect().Descriptor()
)

// foreignKeys has, for each key of a file that contains clusters among much else, the part of the
// file that we read.
var foreignKeys = map[string]string{
	"static_resources": `static_resources is part of a bootstrap of Envoy: want the list under static_resources.clusters, in a file of its own that begins with "clusters:"`,
	"configs": `configs is a config_dump of Envoy: want a list of what it has under "cluster:" (in static_clusters and dynamic_active_clusters), in a file of its own that begins with "clusters:", ` +
		`or of what it has under "endpoint_config:", in one that begins with "resources:"`,
}

// unwrap makes a list of clusters of everything that a file may have. The nodes keep their positions.
//
//	resources: [{"@type": …Cluster}, …]                -> clusters: [{…}, …]
//	{"@type": …Cluster, …}                             -> clusters: [{…}]
//	resources: [{"@type": …ClusterLoadAssignment}, …]  -> clusters: [{name: …, type: STATIC, load_assignment: {…}}, …]
//	{endpoints: …}                                     -> clusters: [{name: …, type: STATIC, load_assignment: {…}}]
func (d *decoder) unwrap(root *yaml.Node) *yaml.Node {
	if root.Kind == yaml.SequenceNode {
		d.add(root, `want a mapping, got a list: clusters go under "clusters:", and resources that each have an "@type" under "resources:"`)
		return root
	}
	for name, text := range foreignKeys {
		if key, _ := entry(root, name); key != nil {
			d.add(key, "%s", text)
			return root
		}
	}
	if key, _ := entry(root, "clusters"); key != nil {
		return root
	}
	at, elements := root, []*yaml.Node{root}
	key, value := entry(root, "resources")
	switch {
	case key != nil:
		for i := 0; i < len(root.Content); i += 2 {
			_ = d.field(root.Content[i], responseFields) // which have no effect in a file
		}
		if !d.checkKind(value, yaml.SequenceNode) {
			return root
		}
		at, elements = key, value.Content
	case cds.NameOfType(typeURL(root)) != clusterName:
		return d.listOf(at, nil, elements)
	}
	var assignments, clusters []*yaml.Node
	for _, e := range elements {
		switch cds.NameOfType(typeURL(e)) {
		case clusterName:
			clusters = append(clusters, e)
		case assignmentName:
			assignments = append(assignments, e)
		default:
			given := e
			if _, value := entry(e, typeKey); value != nil {
				given = value
			}
			d.add(e, `want a resource with the "@type" type.googleapis.com/%s or type.googleapis.com/%s, got %s`, clusterName, assignmentName, describe(given))
		}
	}
	switch {
	case len(assignments) > 0 && len(clusters) > 0:
		d.add(assignments[0], "a ClusterLoadAssignment is given together with a Cluster, want resources of one type")
	case len(elements) == 0:
		d.add(at, "the list of resources is empty")
	}
	return d.listOf(at, clusters, assignments)
}

// listOf returns a list of clusters, in which each assignment is a cluster.
func (d *decoder) listOf(at *yaml.Node, clusters, assignments []*yaml.Node) *yaml.Node {
	d.isSingle = len(assignments) == 1
	for _, a := range assignments {
		c := mapping(a, "load_assignment", a)
		c.Content = append(c.Content, mapping(a, "type", scalar(a, "STATIC")).Content...)
		if key, value := entry(a, "cluster_name"); key != nil && value.ShortTag() == "!!str" {
			c.Content = append(c.Content, mapping(key, "name", value).Content...)
		}
		clusters = append(clusters, c)
	}
	return mapping(at, "clusters", &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: clusters, Line: at.Line, Column: at.Column})
}

func mapping(at *yaml.Node, key string, value *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{scalar(at, key), value}, Line: at.Line, Column: at.Column}
}

func scalar(at *yaml.Node, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Line: at.Line, Column: at.Column}
}
