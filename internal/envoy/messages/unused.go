package messages

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// AddUnused adds a note for each field that is set, but not among those that are used. It returns the
// paths of these fields.
func (e *Invalid) AddUnused(path string, m proto.Message, used ...protoreflect.Name) (paths []string) {
	fields := m.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if name := fields.Get(i).Name(); m.ProtoReflect().Has(fields.Get(i)) && !slices.Contains(used, name) {
			paths = append(paths, strings.Trim(path+"."+string(name), "."))
			e.Add(paths[len(paths)-1], "%s has no effect", name)
		}
	}
	return paths
}

// violation is the interface of errors from the generated validation of Envoy's protos.
type violation interface {
	error
	Field() string // Go name of the field, with a list index or map key, such as "Endpoints[0]"
	Reason() string
	Cause() error
}

var wordEnd = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// addViolations adds the violations in err as notes. It skips violations of the rules for
// load_balancing_weight, because gRPC defines the meaning of a zero weight.
func (e *Invalid) addViolations(path string, err error) {
	if list, ok := err.(interface{ AllErrors() []error }); ok {
		for _, err := range list.AllErrors() {
			e.addViolations(path, err)
		}
		return
	}
	v, ok := errors.AsType[violation](err)
	if !ok {
		e.Add(path, "%v", err)
		return
	}
	name, index, _ := strings.Cut(v.Field(), "[")
	name = strings.ToLower(wordEnd.ReplaceAllString(name, "${1}_${2}"))
	if path = strings.Trim(path+"."+name, "."); index != "" {
		path += "[" + index
	}
	switch {
	case name == "load_balancing_weight":
	case v.Cause() != nil:
		e.addViolations(path, v.Cause())
	default:
		e.Add(path, "%s %s, by Envoy's rules; gRPC does not require it", name, strings.TrimPrefix(v.Reason(), "value "))
	}
}
