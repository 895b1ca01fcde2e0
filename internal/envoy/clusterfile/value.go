package clusterfile

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// decodePlain decodes a string, a uint32 or a UInt32Value if it's written the usual way. For
// anything else, it returns an invalid value. In a large file, most values are like that, and
// decoding them through JSON would take ten times as long.
func decodePlain(node *yaml.Node, field protoreflect.FieldDescriptor) (v protoreflect.Value) {
	isNumber := isNumber(field) && !ambiguousNumber.MatchString(node.Value)
	n, err := strconv.ParseUint(node.Value, 10, 32)
	switch {
	case field.Kind() == protoreflect.StringKind && node.ShortTag() == "!!str":
		return protoreflect.ValueOfString(node.Value)
	case !isNumber || err != nil:
		return v
	case field.Message() != nil:
		return protoreflect.ValueOfMessage(wrapperspb.UInt32(uint32(n)).ProtoReflect())
	}
	return protoreflect.ValueOfUint32(uint32(n))
}

// ambiguousNumber matches numbers like 0443, whose value depends on the version of YAML.
var ambiguousNumber = regexp.MustCompile(`^[-+]?(0[0-9xXoObB_]|[0-9]+_)`)

func isNumber(field protoreflect.FieldDescriptor) bool {
	return field.Kind() == protoreflect.Uint32Kind || field.Message() != nil && field.Message().FullName() == "google.protobuf.UInt32Value"
}

var fieldRanges = map[protoreflect.FullName]string{ // fields that allow less than their type
	"envoy.config.core.v3.SocketAddress.port_value":             "1 to 65535",
	"envoy.config.endpoint.v3.LbEndpoint.load_balancing_weight": "1 to 4294967295",
	"envoy.config.endpoint.v3.LocalityLbEndpoints.priority":     "0 to 128",
}

func expected(field protoreflect.FieldDescriptor) string {
	switch ranged, ok := fieldRanges[field.FullName()]; {
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

// Either rejected or without effect, so don't suggest these.
var notSuggested = map[protoreflect.Name]bool{
	"named_endpoints": true, "overprovisioning_factor": true, "endpoint_stale_after": true, "weighted_priority_health": true,
	"load_balancer_endpoints": true, "leds_cluster_locality_config": true, "endpoint_name": true, "envoy_internal_address": true,
	"named_port": true, "resolver_name": true, "ipv4_compat": true, "network_namespace_filepath": true,
}

// suggest returns the end of an error about an unknown field. It suggests the field with the most
// similar name or, if they're all too different, lists them.
func suggest(name string, fields protoreflect.FieldDescriptors) string {
	best, smallest := "", len(name)/3+2
	var all []string
	for i := range fields.Len() {
		candidate := fields.Get(i).TextName()
		if notSuggested[fields.Get(i).Name()] {
			continue
		}
		if strings.ToLower(name) != name {
			candidate = fields.Get(i).JSONName()
		}
		all = append(all, candidate)
		difference := max(len(name), len(candidate)) - shared(name, candidate)
		if len(name) > 3 && strings.Contains(candidate, name) {
			difference = min(difference, 2)
		}
		if difference < smallest {
			best, smallest = candidate, difference
		}
	}
	if best != "" {
		return ", did you mean " + best + "?"
	}
	return ", want one of " + strings.Join(all, ", ")
}

// shared returns how many bytes two names have in common at the beginning and at the end.
func shared(a, b string) int {
	limit, begin, end := min(len(a), len(b)), 0, 0
	for begin < limit && a[begin] == b[begin] {
		begin++
	}
	for begin+end < limit && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	return begin + end
}
