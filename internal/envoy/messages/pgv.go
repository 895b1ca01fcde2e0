package messages

import (
	"errors"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// violation is the interface of errors from the generated validation of Envoy's protos.
type violation interface {
	error
	Field() string // Go name of the field, with a list index or map key, such as "Endpoints[0]"
	Reason() string
	Cause() error
}

// addViolations adds the violations in err as notes. It skips violations of the rules for
// load_balancing_weight, because gRPC defines the meaning of a zero weight.
func (p *Invalid) addViolations(err error, path string, message protoreflect.MessageDescriptor) {
	const suffix = ", by Envoy's rules; gRPC does not require it"
	if list, ok := errors.AsType[interface {
		error
		AllErrors() []error
	}](err); ok {
		for _, e := range list.AllErrors() {
			p.addViolations(e, path, message)
		}
		return
	}
	v, ok := errors.AsType[violation](err)
	if !ok {
		p.Add(path, "%v"+suffix, err)
		return
	}
	goName, index := splitIndex(v.Field())
	name, field := protoField(message, goName)
	switch {
	case name == "load_balancing_weight":
	case field == nil:
		p.Add(path, "%s %s"+suffix, name, trim(v.Reason()))
	case v.Cause() != nil && field.Message() != nil:
		p.addViolations(v.Cause(), join(path, name+index), field.Message())
	default:
		p.Add(join(path, name+index), "%s %s"+suffix, name, trim(v.Reason()))
	}
}

// splitIndex splits "Endpoints[0]" into "Endpoints" and "[0]". An index that is a map key is
// quoted.
func splitIndex(field string) (name, index string) {
	name, key, indexed := strings.Cut(strings.TrimSuffix(field, "]"), "[")
	if !indexed {
		return name, ""
	}
	if _, err := strconv.Atoi(key); err != nil {
		key = strconv.Quote(key)
	}
	return name, "[" + key + "]"
}

// protoField returns the name and the descriptor of the field with the given Go name. For a oneof,
// the name lists the fields of the oneof, and the descriptor is nil.
func protoField(message protoreflect.MessageDescriptor, goName string) (string, protoreflect.FieldDescriptor) {
	matches := func(name protoreflect.Name) bool {
		return strings.EqualFold(strings.ReplaceAll(string(name), "_", ""), goName)
	}
	for i := range message.Fields().Len() {
		if field := message.Fields().Get(i); matches(field.Name()) {
			if m := field.Message(); field.IsMap() && m != nil {
				return string(field.Name()), field.MapValue()
			}
			return string(field.Name()), field
		}
	}
	for i := range message.Oneofs().Len() {
		oneof := message.Oneofs().Get(i)
		if !matches(oneof.Name()) {
			continue
		}
		var names []string
		for j := range oneof.Fields().Len() {
			names = append(names, string(oneof.Fields().Get(j).Name()))
		}
		return "one of " + strings.Join(names, ", "), nil
	}
	return goName, nil
}

func trim(reason string) string { return strings.TrimPrefix(reason, "value ") }

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
