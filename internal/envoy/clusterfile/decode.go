package clusterfile

import (
	"strings"

	yaml "go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

// decoder decodes YAML by the rules of protobuf's JSON format. Unlike protojson, it does not stop
// at the first mistake, and reports positions.
type decoder struct {
	problems  *Error
	root      *yaml.Node
	hasUnread bool // some Any has a type that we do not read
}

func (d *decoder) message(node *yaml.Node, m protoreflect.Message) {
	if !d.checkKind(node, yaml.MappingNode) {
		return
	}
	if packed, ok := m.Interface().(*anypb.Any); ok {
		d.any(node, packed)
		return
	}
	keys := make(map[protoreflect.FieldNumber]*yaml.Node)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Value == typeKey {
			d.checkType(node, key, m.Descriptor())
			continue
		}
		field := d.field(key, m.Descriptor())
		if field == nil {
			continue
		}
		if first := keys[field.Number()]; first != nil {
			d.add(key, "%s is already given on line %d", quote(key.Value), first.Line)
			continue
		}
		keys[field.Number()] = key
		if oneof := field.ContainingOneof(); oneof != nil && m.WhichOneof(oneof) != nil {
			d.add(key, "%s and %s exclude each other", field.Name(), m.WhichOneof(oneof).Name())
			continue
		}
		if !isNull(value) {
			d.set(value, m, field)
		}
	}
}

func (d *decoder) field(key *yaml.Node, message protoreflect.MessageDescriptor) protoreflect.FieldDescriptor {
	if !d.checkKind(key, yaml.ScalarNode) {
		return nil
	}
	fields := message.Fields()
	if field := fields.ByJSONName(key.Value); field != nil {
		return field
	}
	if field := fields.ByTextName(key.Value); field != nil {
		return field
	}
	d.add(key, "unknown field %s%s", quote(key.Value), suggest(key.Value, fields))
	return nil
}

func (d *decoder) set(node *yaml.Node, m protoreflect.Message, field protoreflect.FieldDescriptor) {
	switch {
	case field.IsMap():
		d.setMap(node, m, field)
	case field.IsList():
		if !d.checkKind(node, yaml.SequenceNode) {
			return
		}
		list := m.Mutable(field).List()
		for _, element := range node.Content {
			if isLeaf(field) {
				if v, ok := d.leaf(element, m, field); ok {
					list.Append(v.List().Get(0))
				}
				continue
			}
			v := list.NewElement()
			d.message(element, v.Message())
			list.Append(v)
		}
	case isLeaf(field):
		if v, ok := d.leaf(node, m, field); ok {
			m.Set(field, v)
		}
	default:
		d.message(node, m.Mutable(field).Message())
	}
}

// setMap sets a map field. All map fields in Envoy's protos have string keys.
func (d *decoder) setMap(node *yaml.Node, m protoreflect.Message, field protoreflect.FieldDescriptor) {
	if isLeaf(field.MapValue()) {
		if v, ok := d.leaf(node, m, field); ok {
			m.Set(field, v)
		}
		return
	}
	if !d.checkKind(node, yaml.MappingNode) {
		return
	}
	entries := m.Mutable(field).Map()
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if !d.checkKind(key, yaml.ScalarNode) {
			continue
		}
		name := protoreflect.ValueOfString(key.Value).MapKey()
		if entries.Has(name) {
			d.add(key, "%s is already given", quote(key.Value))
			continue
		}
		d.message(node.Content[i+1], entries.Mutable(name).Message())
	}
}

// isLeaf reports whether a field is decoded with protojson, because it is a scalar, an enum, or a
// message with a special JSON format. An Any is no leaf, because we do not read all of its types.
func isLeaf(field protoreflect.FieldDescriptor) bool {
	return field.Message() == nil || field.Message().FullName().Parent() == "google.protobuf" && field.Message().Name() != "Any"
}

// checkKind reports whether a node has the given kind, and adds a problem if it has not.
func (d *decoder) checkKind(node *yaml.Node, kind yaml.Kind) bool {
	switch {
	case d.rejectReference(node):
	case node.Kind != kind:
		d.add(node, "want %s, got %s", kindName(kind), describe(node))
	default:
		return true
	}
	return false
}

// rejectReference reports whether a node is an alias or has an anchor or a custom tag, and adds a
// problem in this case. Aliases would let a small file expand to gigabytes.
func (d *decoder) rejectReference(node *yaml.Node) bool {
	switch {
	case node.Kind == yaml.AliasNode:
		d.add(node, "the alias *%s is not supported: want the content that it refers to", printable.Text(truncate(node.Value)))
	case node.Anchor != "":
		d.add(node, "the anchor &%s is not supported", printable.Text(truncate(node.Anchor)))
	case strings.HasPrefix(node.Tag, "!") && !strings.HasPrefix(node.Tag, "!!"):
		d.add(node, "the tag %s is not supported", quote(node.Tag))
	default:
		return false
	}
	return true
}

func (d *decoder) add(node *yaml.Node, format string, args ...any) {
	d.problems.add(positionOf(node), format, args...)
}

// positionOf returns the position of a node. The parser gives no position for some nodes, such as
// empty ones. positionOf then returns line 1 and column 1.
func positionOf(node *yaml.Node) position {
	return position{max(node.Line, 1), max(node.Column, 1)}
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

func kindName(kind yaml.Kind) string {
	switch kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	return "a single value"
}

func describe(node *yaml.Node) string {
	switch {
	case isNull(node):
		return "nothing"
	case node.Kind == yaml.ScalarNode && node.ShortTag() == "!!str":
		return quote(node.Value)
	case node.Kind == yaml.ScalarNode:
		return printable.Text(truncate(node.Value))
	}
	return kindName(node.Kind)
}
