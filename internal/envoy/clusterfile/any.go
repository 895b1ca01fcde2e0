package clusterfile

import (
	"strings"

	yaml "go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/understudy-lb/understudy/internal/envoy/cds"
)

// typeKey is the key that holds the type of a message in protobuf's JSON format.
const typeKey = "@type"

const wantAny = `want a message with its type, such as {"@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig, clusters: [a, b]}`

// any decodes an Any. If we do not read its type, it keeps the type and has no value: we need not
// know the message, and could not check it.
func (d *decoder) any(node *yaml.Node, to *anypb.Any) {
	url := typeURL(node)
	switch t := cds.ReadType(url); {
	case !strings.Contains(url, "/") || !cds.NameOfType(url).IsValid():
		d.add(node, wantAny+", got %s", describe(node))
	case t == nil:
		to.TypeUrl = url
		_, _ = d.toJSON(node) // finds what no file may contain, such as aliases
		d.hasUnread = true
	default:
		m := t.New()
		d.message(node, m)
		value, err := proto.MarshalOptions{Deterministic: true}.Marshal(m.Interface())
		if err != nil {
			d.add(node, "%v", err)
		}
		to.TypeUrl, to.Value = url, value
	}
}

// typeEntry returns the first "@type" of a node and its value.
func typeEntry(node *yaml.Node) (key, value *yaml.Node) {
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		if key, value = node.Content[i], node.Content[i+1]; key.Value == typeKey {
			return key, value
		}
	}
	return nil, nil
}

// typeURL returns the type that a node gives, or "".
func typeURL(node *yaml.Node) string {
	if _, value := typeEntry(node); value != nil && value.Kind == yaml.ScalarNode && value.ShortTag() == "!!str" {
		return value.Value
	}
	return ""
}

// checkType adds a problem unless the "@type" of a message, which only an Any needs, is its type.
func (d *decoder) checkType(node, key *yaml.Node, want protoreflect.MessageDescriptor) {
	first, value := typeEntry(node)
	switch {
	case first != key:
		d.add(key, "%s is already given on line %d", quote(typeKey), first.Line)
	case d.checkKind(value, yaml.ScalarNode) && cds.NameOfType(value.Value) != want.FullName():
		d.add(value, "want the type type.googleapis.com/%s, got %s", want.FullName(), describe(value))
	}
}
