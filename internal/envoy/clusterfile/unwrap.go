package clusterfile

import (
	"cmp"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

var (
	clusterName    = proto.MessageName(&clusterv3.Cluster{})
	assignmentName = proto.MessageName(&endpointv3.ClusterLoadAssignment{})
	responseFields = (&discoveryv3.DiscoveryResponse{}).ProtoReflect().Descriptor()
)

// resource is a Cluster, or just the load_assignment of a STATIC one.
type resource struct {
	node         *yaml.Node
	isAssignment bool
}

// unwrap finds the resources, whichever form the file has:
//
//	clusters: [{…}, …]
//	resources: [{"@type": …Cluster}, …]  or  [{"@type": …ClusterLoadAssignment}, …]
//	{"@type": …Cluster, …}
//	{endpoints: …}  with or without its type, ClusterLoadAssignment
func (d *decoder) unwrap(root *yaml.Node) {
	if root.Kind == yaml.SequenceNode {
		d.add(root, `want a mapping, got a list: clusters go under "clusters:", and resources that each have an "@type" under "resources:"`)
		return
	}
	for _, name := range []string{"static_resources", "configs"} {
		if key, _ := entry(root, name); key != nil {
			d.add(key, `%s is part of a bootstrap or of a config_dump of Envoy: want a list of its clusters, in a file of its own that begins with "clusters:"`, name)
			return
		}
	}
	key, list := entry(root, "clusters")
	isList := key != nil
	if !isList {
		key, list = entry(root, "resources")
	}
	if key == nil {
		d.isSingle = cds.NameOfType(typeURL(root)) != clusterName
		d.resources = []resource{{root, d.isSingle}}
		return
	}
	for other := range pairs(root) {
		if !isList {
			_ = d.field(other, responseFields) // these have no effect in a file
		} else if other.Value != "clusters" {
			d.add(other, "%s is given together with clusters, want nothing else in such a file", printable.Quote(other.Value))
		}
	}
	if !d.checkKind(list, yaml.SequenceNode) {
		return
	}
	for _, e := range list.Content {
		kind := cds.NameOfType(typeURL(e))
		if isList {
			kind = clusterName
		}
		if kind != clusterName && kind != assignmentName {
			_, given := entry(e, typeKey)
			d.add(e, `want a resource with the "@type" type.googleapis.com/%s or type.googleapis.com/%s, got %s`, clusterName, assignmentName, describe(cmp.Or(given, e)))
			continue
		}
		d.resources = append(d.resources, resource{e, kind == assignmentName})
	}
	first := slices.IndexFunc(d.resources, func(r resource) bool { return r.isAssignment })
	d.isSingle = first == 0 && len(d.resources) == 1
	switch {
	case len(list.Content) == 0:
		d.add(key, "the list of %s is empty", key.Value)
	case first >= 0 && slices.ContainsFunc(d.resources, func(r resource) bool { return !r.isAssignment }):
		d.add(d.resources[first].node, "a ClusterLoadAssignment is given together with a Cluster, want resources of one type")
	}
}
