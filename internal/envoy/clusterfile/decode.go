package clusterfile

import (
	"cmp"
	"encoding/json"
	"strings"

	yaml "go.yaml.in/yaml/v3"
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
	path     string
	root     *yaml.Node // has a list of clusters
	isSingle bool       // the file has a single ClusterLoadAssignment instead
	problems messages.Invalid

	hasUnread bool // some Any has a type that we do not read
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
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
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
	case field.IsList():
		return d.setList(node, m, field)
	case isLeaf(field), field.IsMap() && isLeaf(field.MapValue()):
		if v, ok := d.leaf(node, m, field); ok {
			m.Set(field, v)
		}
	case !field.IsMap():
		return d.message(node, m.Mutable(field).Message())
	case d.checkKind(node, yaml.MappingNode):
		entries := m.Mutable(field).Map()
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := protoreflect.ValueOfString(node.Content[i].Value).MapKey()
			if d.leaveOut(node.Content[i], d.message(node.Content[i+1], entries.Mutable(key).Message())) {
				entries.Clear(key)
			}
		}
	}
	return ""
}

func (d *decoder) setList(node *yaml.Node, m protoreflect.Message, field protoreflect.FieldDescriptor) (because protoreflect.FullName) {
	if !d.checkKind(node, yaml.SequenceNode) {
		return ""
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
		if unread := d.message(element, v.Message()); d.leaveOut(element, unread) {
			because = unread
		} else {
			list.Append(v)
		}
	}
	if list.Len() > 0 {
		return ""
	}
	return because
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
		to.TypeUrl, d.hasUnread = url, true
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

// leaf decodes the value of a field, or one element if the field is a list. For a list field, it
// returns a list with this element.
func (d *decoder) leaf(node *yaml.Node, m protoreflect.Message, field protoreflect.FieldDescriptor) (protoreflect.Value, bool) {
	if value, ok := decodePlain(node, field); ok {
		return value, true
	}
	want := expected(field)
	if isNumber(field) && ambiguousNumber.MatchString(node.Value) {
		want += " in decimal"
	} else if value, ok := decodeJSON(node, m.New(), field); ok {
		return value, true
	}
	d.add(node, "%s: want %s, got %s", field.Name(), want, describe(node))
	return protoreflect.Value{}, false
}

func decodeJSON(node *yaml.Node, scratch protoreflect.Message, field protoreflect.FieldDescriptor) (protoreflect.Value, bool) {
	var value any
	if err := node.Decode(&value); err != nil {
		return protoreflect.Value{}, false
	}
	if field.IsList() {
		value = []any{value}
	}
	encoded, err := json.Marshal(map[string]any{field.JSONName(): value})
	if err == nil {
		err = protojson.Unmarshal(encoded, scratch.Interface())
	}
	isZero := !scratch.Has(field) // for most fields, this is the same as unset
	return scratch.Get(field), err == nil && (!isZero || !field.HasPresence() && !field.IsList() && !field.IsMap())
}
