package clusterfile

import (
	"cmp"
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// decoder decodes YAML according to protobuf's JSON format. Unlike protojson, it reports all
// mistakes instead of stopping at the first, and says where they are.
//
// If leavesOut is set, we drop every Any whose type we don't read. Without its value, an Any would
// be misleading for clients that do read it, e.g. an UpstreamTlsContext without fields doesn't
// verify certificates. Along with the Any, we drop the smallest part around it that can go as a
// whole: an entry of a map, an element of a list, or a field of the cluster. If a list loses all of
// its elements, it's treated like an Any.
//
//	transport_socket: {name: tls, typed_config: ANY}                       -> transport_socket
//	load_balancing_policy: {policies: [{typed_extension_config: …ANY}, …]} -> policies[0]
//	typed_extension_protocol_options: {http: ANY, …}                       -> its entry
type decoder struct {
	path      string
	resources []resource
	isSingle  bool // the file is a single ClusterLoadAssignment
	problems  messages.Invalid

	leavesOut bool
	notes     messages.Invalid // what we dropped
}

// Never drop these, no matter what's in them.
var indispensable = map[protoreflect.FullName]bool{
	clusterName:    true,
	assignmentName: true,
	"envoy.config.endpoint.v3.LocalityLbEndpoints": true,
	"envoy.config.endpoint.v3.LbEndpoint":          true,
}

// message decodes a message. If it has to be dropped as a whole because of some Any, we return the
// type of that Any.
func (d *decoder) message(node *yaml.Node, m protoreflect.Message) (because protoreflect.FullName) {
	if !d.checkKind(node, yaml.MappingNode) {
		return ""
	}
	if packed, ok := m.Interface().(*anypb.Any); ok {
		return d.any(node, packed)
	}
	given := make(map[protoreflect.FieldNumber]*yaml.Node)
	for key, value := range pairs(node) {
		if key.Value == typeKey { // allowed anywhere, but only an Any needs it
			if want := m.Descriptor().FullName(); d.checkKind(value, yaml.ScalarNode) && cds.NameOfType(value.Value) != want {
				d.add(value, "want the type type.googleapis.com/%s, got %s", want, describe(value))
			}
			continue
		}
		field := d.field(key, m.Descriptor())
		if field == nil {
			continue
		}
		first, oneof := given[field.Number()], field.ContainingOneof()
		given[field.Number()] = cmp.Or(first, key)
		switch {
		case first != nil: // e.g. once in snake case and once in camel case
			d.add(key, "%s is already given on line %d", printable.Quote(key.Value), first.Line)
		case oneof != nil && m.WhichOneof(oneof) != nil:
			d.add(key, "%s and %s exclude each other", field.Name(), m.WhichOneof(oneof).Name())
		case !isNull(value):
			unread := d.set(value, m, field)
			if !indispensable[m.Descriptor().FullName()] {
				because = cmp.Or(because, unread)
			} else if d.leaveOut(key, unread) {
				m.Clear(field)
			}
		}
	}
	return because
}

func (d *decoder) checkKind(node *yaml.Node, kind yaml.Kind) bool {
	if node.Kind != kind {
		d.add(node, "want %s, got %s", kindName(kind), describe(node))
	}
	return node.Kind == kind
}

func (d *decoder) add(node *yaml.Node, format string, args ...any) {
	d.problems.AddAt(d.positionOf(node), format, args...)
}

func (d *decoder) field(key *yaml.Node, message protoreflect.MessageDescriptor) protoreflect.FieldDescriptor {
	fields := message.Fields()
	if field := fields.ByJSONName(key.Value); field != nil {
		return field
	}
	if field := fields.ByTextName(key.Value); field != nil {
		return field
	}
	suggestion := ""
	if len(d.problems.Problems) < messages.MaxProblems { // with 2 million fields, suggestions would take more than a minute
		suggestion = suggest(key.Value, fields)
	}
	d.add(key, "unknown field %s%s", printable.Quote(key.Value), suggestion)
	return nil
}

// Note that all map fields in Envoy's protos have string keys.
func (d *decoder) set(node *yaml.Node, m protoreflect.Message, field protoreflect.FieldDescriptor) (because protoreflect.FullName) {
	switch {
	case field.IsList() && d.checkKind(node, yaml.SequenceNode):
		list := m.Mutable(field).List()
		for _, element := range node.Content {
			v, unread := d.value(element, m, field, list.NewElement())
			if d.leaveOut(element, unread) {
				because = unread
			} else if v.IsValid() {
				list.Append(v)
			}
		}
		if list.Len() > 0 {
			because = ""
		}
	case field.IsMap() && d.checkKind(node, yaml.MappingNode):
		entries := m.Mutable(field).Map()
		for key, value := range pairs(node) {
			v, unread := d.value(value, m, field, entries.NewValue())
			if !d.leaveOut(key, unread) && v.IsValid() {
				entries.Set(protoreflect.ValueOfString(key.Value).MapKey(), v)
			}
		}
	case !field.IsList() && !field.IsMap():
		var v protoreflect.Value
		if v, because = d.value(node, m, field, m.NewField(field)); v.IsValid() {
			m.Set(field, v)
		}
	}
	return because
}

// value decodes the value of a field or, if it's a list or map, one of its elements. empty is a new
// value of that type.
func (d *decoder) value(node *yaml.Node, m protoreflect.Message, field protoreflect.FieldDescriptor, empty protoreflect.Value) (v protoreflect.Value, because protoreflect.FullName) {
	if isLeaf(elementOf(field)) {
		return d.leaf(node, m, field), ""
	}
	because = d.message(node, empty.Message())
	return empty, because
}

func (d *decoder) leaveOut(node *yaml.Node, because protoreflect.FullName) bool {
	if because != "" {
		d.notes.AddAt(d.positionOf(node), "left out for clients, because %s is not read", because)
	}
	return because != ""
}

const typeKey = "@type" // as in protobuf's JSON format

// any decodes an Any. If it's of a type that we don't read, we keep the type but not the value,
// which we can't check without knowing the message.
func (d *decoder) any(node *yaml.Node, to *anypb.Any) (because protoreflect.FullName) {
	url := typeURL(node)
	switch t := cds.ReadType(url); {
	case !strings.Contains(url, "/") || !cds.NameOfType(url).IsValid():
		d.add(node, `want a message with its type, such as {"@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig, clusters: [a, b]}, got %s`, describe(node))
	case t == nil:
		to.TypeUrl = url
		if d.leavesOut {
			return cds.NameOfType(url)
		}
	default:
		m := t.New()
		because = d.message(node, m)
		to.TypeUrl = url
		to.Value, _ = proto.MarshalOptions{Deterministic: true}.Marshal(m.Interface()) // can't fail, because YAML is valid UTF-8
	}
	return because
}

func typeURL(node *yaml.Node) string {
	if _, value := entry(node, typeKey); value != nil && value.Kind == yaml.ScalarNode && value.ShortTag() == "!!str" {
		return value.Value
	}
	return ""
}

// Leaves are decoded with protojson. They're scalars, enums and messages with a special JSON
// format. Any is an exception, since we don't read all of its types.
func isLeaf(field protoreflect.FieldDescriptor) bool {
	return field.Message() == nil || field.Message().FullName().Parent() == "google.protobuf" && field.Message().Name() != "Any"
}

// The values of a map have their own descriptor, but the elements of a list share one with the
// list.
func elementOf(field protoreflect.FieldDescriptor) protoreflect.FieldDescriptor {
	if field.IsMap() {
		return field.MapValue()
	}
	return field
}

// leaf returns an invalid value if there's a mistake.
func (d *decoder) leaf(node *yaml.Node, m protoreflect.Message, field protoreflect.FieldDescriptor) protoreflect.Value {
	element := elementOf(field)
	if v := decodePlain(node, element); v.IsValid() {
		return v
	}
	want := expected(element)
	if isNumber(element) && ambiguousNumber.MatchString(node.Value) {
		want += " in decimal"
	} else if v := decodeJSON(node, m.New(), field); v.IsValid() {
		return v
	}
	d.add(node, "%s: want %s, got %s", field.Name(), want, describe(node))
	return protoreflect.Value{}
}

func decodeJSON(node *yaml.Node, scratch protoreflect.Message, field protoreflect.FieldDescriptor) (v protoreflect.Value) {
	var value any
	if node.Load(&value) != nil {
		return v
	}
	switch {
	case field.IsList():
		value = []any{value}
	case field.IsMap():
		value = map[string]any{"": value}
	}
	encoded, err := json.Marshal(map[string]any{field.JSONName(): value})
	if err == nil {
		err = protojson.Unmarshal(encoded, scratch.Interface())
	}
	switch v := scratch.Get(field); {
	case err != nil:
	case field.IsList():
		return v.List().Get(0)
	case field.IsMap():
		return v.Map().Get(protoreflect.ValueOfString("").MapKey())
	case scratch.Has(field) || !field.HasPresence(): // if there's no presence, zero is the same as unset
		return v
	}
	return v
}
