package clusterfile

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// leaf decodes the value of a field, or one element if the field is a list. For a list field, it
// returns a list with this element.
func (d *decoder) leaf(node *yaml.Node, m protoreflect.Message, field protoreflect.FieldDescriptor) (protoreflect.Value, bool) {
	if value, ok := decodePlain(node, field); ok {
		return value, true
	}
	value, ok := d.toJSON(node)
	if !ok {
		return protoreflect.Value{}, false
	}
	want := expected(field)
	if isNumber(field) && ambiguousNumber.MatchString(node.Value) {
		want += " in decimal"
	} else {
		if field.IsList() {
			value = []any{value}
		}
		encoded, err := json.Marshal(map[string]any{field.JSONName(): value})
		scratch := m.New()
		if err == nil {
			err = protojson.Unmarshal(encoded, scratch.Interface())
		}
		if err == nil && scratch.Has(field) {
			return scratch.Get(field), true
		}
		if err == nil && !field.HasPresence() && !field.IsList() {
			return field.Default(), !field.IsMap() // the value is zero, which is the same as an unset field
		}
	}
	d.add(node, "%s: want %s, got %s", field.Name(), want, describe(node))
	return protoreflect.Value{}, false
}

// decodePlain decodes a string, a uint32 or a UInt32Value in its usual form. It returns false for
// other values. Most values of a large file have the usual form, and decoding them through JSON
// would take ten times as long.
func decodePlain(node *yaml.Node, field protoreflect.FieldDescriptor) (protoreflect.Value, bool) {
	if node.Kind != yaml.ScalarNode || field.IsList() || field.IsMap() {
		return protoreflect.Value{}, false
	}
	if field.Kind() == protoreflect.StringKind {
		return protoreflect.ValueOfString(node.Value), node.ShortTag() == "!!str" && utf8.ValidString(node.Value)
	}
	n, err := strconv.ParseUint(node.Value, 10, 32)
	switch {
	case err != nil || !isNumber(field) || node.ShortTag() != "!!int" || ambiguousNumber.MatchString(node.Value):
		return protoreflect.Value{}, false
	case field.Message() != nil:
		return protoreflect.ValueOfMessage(wrapperspb.UInt32(uint32(n)).ProtoReflect()), true
	}
	return protoreflect.ValueOfUint32(uint32(n)), true
}

func (d *decoder) toJSON(node *yaml.Node) (any, bool) {
	if d.rejectReference(node) {
		return nil, false
	}
	switch node.Kind {
	case yaml.SequenceNode:
		list := make([]any, 0, len(node.Content))
		for _, element := range node.Content {
			v, ok := d.toJSON(element)
			if !ok {
				return nil, false
			}
			list = append(list, v)
		}
		return list, true
	case yaml.MappingNode:
		return d.toObject(node)
	}
	return d.toScalar(node)
}

func (d *decoder) toObject(node *yaml.Node) (any, bool) {
	object := make(map[string]any, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if !d.checkKind(key, yaml.ScalarNode) {
			return nil, false
		}
		if _, ok := object[key.Value]; ok {
			d.add(key, "%s is already given", quote(key.Value))
			return nil, false
		}
		v, ok := d.toJSON(node.Content[i+1])
		if !ok {
			return nil, false
		}
		object[key.Value] = v
	}
	return object, true
}

func (d *decoder) toScalar(node *yaml.Node) (any, bool) {
	switch node.ShortTag() {
	case "!!int", "!!float", "!!bool", "!!null":
	default:
		return node.Value, true
	}
	var v any
	if err := node.Decode(&v); err != nil {
		d.add(node, "%s is not of the type %s", quote(node.Value), node.ShortTag())
		return nil, false
	}
	if f, ok := v.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
		return strings.ReplaceAll(strings.TrimPrefix(fmt.Sprint(f), "+"), "Inf", "Infinity"), true
	}
	return v, true
}

const maxShown = 60

func quote(text string) string { return strconv.Quote(truncate(text)) }

func truncate(text string) string {
	if len(text) <= maxShown {
		return text
	}
	end := maxShown
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// fieldRanges has an entry for each field whose range is narrower than the range of its type.
var fieldRanges = map[protoreflect.FullName]string{
	"envoy.config.core.v3.SocketAddress.port_value":             "1 to 65535",
	"envoy.config.endpoint.v3.LbEndpoint.load_balancing_weight": "1 to 4294967295",
	"envoy.config.endpoint.v3.LocalityLbEndpoints.priority":     "0 to 128",
}

// ambiguousNumber matches numbers whose value depends on the version of YAML, such as 0443.
var ambiguousNumber = regexp.MustCompile(`^[-+]?(0[0-9xXoObB_]|[0-9]+_)`)

func isNumber(field protoreflect.FieldDescriptor) bool {
	return field.Kind() == protoreflect.Uint32Kind || field.Message() != nil && field.Message().FullName() == "google.protobuf.UInt32Value"
}

func expected(field protoreflect.FieldDescriptor) string {
	if field.IsMap() {
		return "a mapping to " + expected(field.MapValue())
	}
	if isNumber(field) {
		if r, ok := fieldRanges[field.FullName()]; ok {
			return "a whole number from " + r
		}
		return "a whole number from 0 to 4294967295"
	}
	switch field.Kind() {
	case protoreflect.StringKind:
		return "a string (in quotes where it looks like something else)"
	case protoreflect.BoolKind:
		return "true or false"
	case protoreflect.EnumKind:
		values, names := field.Enum().Values(), []string(nil)
		for i := range values.Len() {
			names = append(names, string(values.Get(i).Name()))
		}
		return "one of " + strings.Join(names, ", ")
	case protoreflect.MessageKind:
		switch field.Message().Name() {
		case "BoolValue":
			return "true or false"
		case "Duration":
			return `a duration such as "10s"`
		}
		return fmt.Sprintf("the JSON form of %s", field.Message().FullName())
	}
	return fmt.Sprintf("a value of the type %s", field.Kind())
}
