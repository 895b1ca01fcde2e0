package envoy

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

// addViolations adds the violations in err as notes. It skips violations about weights of zero,
// because gRPC defines what these mean.
func (p *Invalid) addViolations(err error, path string, message protoreflect.MessageDescriptor) {
	const but = ", by Envoy's rules; gRPC does not require it"
	if several, ok := errors.AsType[interface {
		error
		AllErrors() []error
	}](err); ok {
		for _, e := range several.AllErrors() {
			p.addViolations(e, path, message)
		}
		return
	}
	v, ok := errors.AsType[violation](err)
	if !ok {
		p.Add(path, "%v"+but, err)
		return
	}
	goName, index := splitIndex(v.Field())
	name, field := protoField(message, goName)
	switch {
	case name == "load_balancing_weight":
	case field == nil:
		p.Add(path, "%s %s"+but, name, trim(v.Reason()))
	case v.Cause() != nil && field.Message() != nil:
		p.addViolations(v.Cause(), join(path, name+index), field.Message())
	default:
		p.Add(join(path, name+index), "%s %s"+but, name, trim(v.Reason()))
	}
}

// splitIndex splits "Endpoints[0]" into "Endpoints" and "[0]". If the index is a map key, it is
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
// the name lists the oneof's fields.
func protoField(message protoreflect.MessageDescriptor, goName string) (string, protoreflect.FieldDescriptor) {
	same := func(name protoreflect.Name) bool {
		return strings.EqualFold(strings.ReplaceAll(string(name), "_", ""), goName)
	}
	for i := range message.Fields().Len() {
		if field := message.Fields().Get(i); same(field.Name()) {
			if m := field.Message(); field.IsMap() && m != nil {
				return string(field.Name()), field.MapValue()
			}
			return string(field.Name()), field
		}
	}
	for i := range message.Oneofs().Len() {
		oneof := message.Oneofs().Get(i)
		if !same(oneof.Name()) {
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
