package clusterfile

import (
	"strconv"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/wrapperspb"
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
	wrapped := field.Kind() == protoreflect.MessageKind && field.Message().FullName() == uint32Value
	if !wrapped && field.Kind() != protoreflect.Uint32Kind || node.ShortTag() != "!!int" || ambiguousNumber.MatchString(node.Value) {
		return protoreflect.Value{}, false
	}
	n, err := strconv.ParseUint(node.Value, 10, 32)
	if err != nil {
		return protoreflect.Value{}, false
	}
	if wrapped {
		return protoreflect.ValueOfMessage(wrapperspb.UInt32(uint32(n)).ProtoReflect()), true
	}
	return protoreflect.ValueOfUint32(uint32(n)), true
}

var uint32Value = proto.MessageName(&wrapperspb.UInt32Value{})
