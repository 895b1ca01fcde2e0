package file

import (
	"fmt"
	"regexp"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// ranges holds the ranges of numbers that are narrower than their types.
var ranges = map[protoreflect.FullName]string{
	"envoy.config.core.v3.SocketAddress.port_value":             "1 to 65535",
	"envoy.config.endpoint.v3.LbEndpoint.load_balancing_weight": "1 to 4294967295",
	"envoy.config.endpoint.v3.LocalityLbEndpoints.priority":     "0 to 128",
}

// notDecimal matches the numbers of YAML that are not decimal. The value of one that
// begins with 0 depends on the version of YAML: 0443 is 443 or 291.
var notDecimal = regexp.MustCompile(`^[-+]?(0[0-9xXoObB_]|[0-9]+_)`)

// isNumber returns whether a field takes whole numbers.
func isNumber(field protoreflect.FieldDescriptor) bool {
	return field.Kind() == protoreflect.Uint32Kind || field.Message() != nil && field.Message().FullName() == "google.protobuf.UInt32Value"
}

// wanted says what a field takes.
func wanted(field protoreflect.FieldDescriptor) string {
	if field.IsMap() {
		return "a mapping to " + wanted(field.MapValue())
	}
	if isNumber(field) {
		if r, ok := ranges[field.FullName()]; ok {
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
		case "Any":
			return `a message with its type, such as {"@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig, clusters: [a, b]}`
		case "BoolValue":
			return "true or false"
		case "Duration":
			return `a duration such as "10s"`
		}
		return fmt.Sprintf("the JSON form of %s", field.Message().FullName())
	}
	return fmt.Sprintf("a value of the type %s", field.Kind())
}
