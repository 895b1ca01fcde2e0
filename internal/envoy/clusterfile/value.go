package clusterfile

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

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

// ambiguousNumber matches numbers whose value depends on the version of YAML, such as 0443.
var ambiguousNumber = regexp.MustCompile(`^[-+]?(0[0-9xXoObB_]|[0-9]+_)`)

func isNumber(field protoreflect.FieldDescriptor) bool {
	return field.Kind() == protoreflect.Uint32Kind || field.Message() != nil && field.Message().FullName() == "google.protobuf.UInt32Value"
}

// fieldRanges has an entry for each field whose range is narrower than the range of its type.
var fieldRanges = map[protoreflect.FullName]string{
	"envoy.config.core.v3.SocketAddress.port_value":             "1 to 65535",
	"envoy.config.endpoint.v3.LbEndpoint.load_balancing_weight": "1 to 4294967295",
	"envoy.config.endpoint.v3.LocalityLbEndpoints.priority":     "0 to 128",
}

// expected describes the values of a field.
func expected(field protoreflect.FieldDescriptor) string {
	switch ranged, ok := fieldRanges[field.FullName()]; {
	case field.IsMap():
		return "a mapping to " + expected(field.MapValue())
	case ok:
		return "a whole number from " + ranged
	case isNumber(field):
		return "a whole number from 0 to 4294967295"
	case field.Kind() == protoreflect.StringKind:
		return "a string (in quotes where it looks like something else)"
	case field.Kind() == protoreflect.BoolKind, field.Message() != nil && field.Message().Name() == "BoolValue":
		return "true or false"
	case field.Enum() != nil:
		values, names := field.Enum().Values(), []string(nil)
		for i := range values.Len() {
			names = append(names, string(values.Get(i).Name()))
		}
		return "one of " + strings.Join(names, ", ")
	case field.Message() != nil && field.Message().Name() == "Duration":
		return `a duration such as "10s"`
	case field.Message() != nil:
		return fmt.Sprintf("the JSON form of %s", field.Message().FullName())
	}
	return fmt.Sprintf("a value of the type %s", field.Kind())
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
		return printable.Quote(node.Value)
	case node.Kind == yaml.ScalarNode:
		return printable.Line(node.Value, maxShown)
	}
	return kindName(node.Kind)
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

// maxShown limits what errors show of a name or a value.
const maxShown = 100

// notSuggested lists the fields that suggest omits, because they are rejected or have no effect.
var notSuggested = map[protoreflect.Name]bool{
	"named_endpoints": true, "overprovisioning_factor": true, "endpoint_stale_after": true, "weighted_priority_health": true,
	"load_balancer_endpoints": true, "leds_cluster_locality_config": true, "endpoint_name": true, "envoy_internal_address": true,
	"named_port": true, "resolver_name": true, "ipv4_compat": true, "network_namespace_filepath": true,
}

// suggest returns the end of an error about an unknown field. It names the field whose name is most
// similar, or all fields if none is similar.
func suggest(name string, fields protoreflect.FieldDescriptors) string {
	camelCase := strings.ToLower(name) != name
	best, bestDistance := "", len(name)/3+1
	var all []string
	for i := range fields.Len() {
		if notSuggested[fields.Get(i).Name()] {
			continue
		}
		candidate := fields.Get(i).TextName()
		if camelCase {
			candidate = fields.Get(i).JSONName()
		}
		all = append(all, candidate)
		distance := editDistance(name, candidate)
		if len(name) > 3 && strings.Contains(candidate, name) {
			distance = min(distance, 1)
		}
		if distance <= bestDistance && (best == "" || distance < bestDistance) {
			best, bestDistance = candidate, distance
		}
	}
	if best != "" {
		return ", did you mean " + best + "?"
	}
	return ", want one of " + strings.Join(all, ", ")
}

// editDistance returns the Levenshtein distance between the first maxShown bytes of a, and b.
func editDistance(a, b string) int {
	a = a[:min(len(a), maxShown)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
