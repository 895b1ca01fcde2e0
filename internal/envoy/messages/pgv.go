package messages

import (
	"errors"
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
		p.Add(path, "%v", err)
		return
	}
	goName, index, _ := strings.Cut(v.Field(), "[")
	name, field := protoField(message, goName)
	if path = join(path, name); index != "" {
		path += "[" + index
	}
	switch {
	case name == "load_balancing_weight":
	case v.Cause() != nil && field != nil && field.Message() != nil:
		p.addViolations(v.Cause(), path, field.Message())
	default:
		p.Add(path, "%s %s, by Envoy's rules; gRPC does not require it", name, strings.TrimPrefix(v.Reason(), "value "))
	}
}

// protoField returns the name and the descriptor of the field with the given Go name, or of the
// values of a map. A oneof has no descriptor.
func protoField(message protoreflect.MessageDescriptor, goName string) (string, protoreflect.FieldDescriptor) {
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		if name := string(field.Name()); strings.EqualFold(strings.ReplaceAll(name, "_", ""), goName) {
			if field.IsMap() {
				field = field.MapValue()
			}
			return name, field
		}
	}
	return goName, nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
