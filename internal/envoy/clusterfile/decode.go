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

// decoder decodes YAML by the rules of protobuf's JSON format. Unlike protojson, it does not stop
// at the first mistake, and reports positions.
//
// With leavesOut, it leaves out each Any whose type we do not read, because without its value the Any
// would mislead those who do: an UpstreamTlsContext without fields verifies no certificate. An Any
// takes the smallest part with it that can be left out: an entry of a map, an element of a list, or
// a field of the cluster. A list that loses all of its elements counts like an Any.
//
//	transport_socket: {name: tls, typed_config: ANY}                       -> transport_socket
//	load_balancing_policy: {policies: [{typed_extension_config: …ANY}, …]} -> policies[0]
//	typed_extension_protocol_options: {http: ANY, …}                       -> its entry
type decoder struct {
	path      string
	resources []resource
	isSingle  bool // the file has a single ClusterLoadAssignment
	problems  messages.Invalid

	leavesOut bool
	notes     messages.Invalid // what is left out
}

// indispensable has the messages that are never left out, whatever they contain.
var indispensable = map[protoreflect.FullName]bool{
	clusterName:    true,
	assignmentName: true,
	"envoy.config.endpoint.v3.LocalityLbEndpoints": true,
	"envoy.config.endpoint.v3.LbEndpoint":          true,
}

// message decodes a message. It returns the type of the Any because of which the message must be left
// out as a whole, or "".
func (d *decoder) message(node *yaml.Node, m protoreflect.Message) (because protoreflect.FullName) {
	if !d.checkKind(node, yaml.MappingNode) {
		return ""
	}
	if packed, ok := m.Interface().(*anypb.Any); ok {
		return d.any(node, packed)
	}
	given := make(map[protoreflect.FieldNumber]*yaml.Node)
	for key, value := range pairs(node) {
		if key.Value == typeKey { // only an Any needs it
			if want := m.Descriptor().FullName(); d.checkKind(value, yaml.ScalarNode) && cds.NameOfType(value.Value) != want {
				d.add(value, "want the type type.googleapis.com/%s, got %s", want, describe(value))
			}
			continue
		}
		field := d.field(key, m.Descriptor())
		if field == nil {
			continue
		}
		if first := given[field.Number()]; first != nil { // in snake case and in camel case
			d.add(key, "%s is already given on line %d", printable.Quote(key.Value), first.Line)
			continue
		}
		given[field.Number()] = key
		if oneof := field.ContainingOneof(); oneof != nil && m.WhichOneof(oneof) != nil {
			d.add(key, "%s and %s exclude each other", field.Name(), m.WhichOneof(oneof).Name())
			continue
		}
		if isNull(value) {
			continue
		}
		unread := d.set(value, m, field)
		if !indispensable[m.Descriptor().FullName()] {
			because = cmp.Or(because, unread)
		} else if d.leaveOut(key, unread) {
			m.Clear(field)
		}
	}
	return because
}

// checkKind reports whether a node has the given kind, and adds a problem if it has not.
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
	if len(d.problems.Problems) < messages.MaxProblems { // for 2 million fields, suggestions would take more than a minute
		suggestion = suggest(key.Value, fields)
	}
	d.add(key, "unknown field %s%s", printable.Quote(key.Value), suggestion)
	return nil
}

// set sets a field. All map fields in Envoy's protos have string keys.
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

// value decodes a value of a field, or of an element or an entry of the field. empty is such a value.
func (d *decoder) value(node *yaml.Node, m protoreflect.Message, field protoreflect.FieldDescriptor, empty protoreflect.Value) (v protoreflect.Value, because protoreflect.FullName) {
	if isLeaf(elementOf(field)) {
		return d.leaf(node, m, field), ""
	}
	because = d.message(node, empty.Message())
	return empty, because
}

// leaveOut reports whether something is left out because of an Any of a type, and notes it.
func (d *decoder) leaveOut(node *yaml.Node, because protoreflect.FullName) bool {
	if because != "" {
		d.notes.AddAt(d.positionOf(node), "left out for clients, because %s is not read", because)
	}
	return because != ""
}

// typeKey is the key that holds the type of a message in protobuf's JSON format.
const typeKey = "@type"

// any decodes an Any. If we do not read its type, it keeps the type and has no value: we need not
// know the message, and could not check it.
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
		value, err := proto.MarshalOptions{Deterministic: true}.Marshal(m.Interface())
		if err != nil {
			d.add(node, "%v", err)
		}
		to.TypeUrl, to.Value = url, value
	}
	return because
}

// typeURL returns the type that a node gives, or "".
func typeURL(node *yaml.Node) string {
	if _, value := entry(node, typeKey); value != nil && value.Kind == yaml.ScalarNode && value.ShortTag() == "!!str" {
		return value.Value
	}
	return ""
}

// isLeaf reports whether a field is decoded with protojson, because it is a scalar, an enum, or a
// message with a special JSON format. An Any is no leaf, because we do not read all of its types.
func isLeaf(field protoreflect.FieldDescriptor) bool {
	return field.Message() == nil || field.Message().FullName().Parent() == "google.protobuf" && field.Message().Name() != "Any"
}

// elementOf returns what describes the entries of a map. A list and its elements have one descriptor.
func elementOf(field protoreflect.FieldDescriptor) protoreflect.FieldDescriptor {
	if field.IsMap() {
		return field.MapValue()
	}
	return field
}

// leaf decodes a value for which isLeaf is true. It returns an invalid value after a mistake.
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
	case scratch.Has(field) || !field.HasPresence(): // for most fields, zero is the same as unset
		return v
	}
	return v
}
