package cds

import (
	"strings"

	typev3 "github.com/cncf/xds/go/xds/type/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	roundrobinv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	wrrlocalityv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// readTypes has the types of the Anys that Read reads.
var readTypes = func() map[protoreflect.FullName]protoreflect.MessageType {
	types := make(map[protoreflect.FullName]protoreflect.MessageType)
	for _, m := range []proto.Message{&aggregatev3.ClusterConfig{}, &roundrobinv3.RoundRobin{}, &wrrlocalityv3.WrrLocality{}, &typev3.TypedStruct{}} {
		types[proto.MessageName(m)] = m.ProtoReflect().Type()
	}
	return types
}()

// ReadType returns the type with the given URL, or nil if Read does not read Anys of this type. What
// it returns does not depend on the types that the program links, so that every program accepts the
// same files.
func ReadType(url string) protoreflect.MessageType { return readTypes[NameOfType(url)] }

// NameOfType returns the name of the type with the given URL.
func NameOfType(url string) protoreflect.FullName {
	return protoreflect.FullName(url[strings.LastIndexByte(url, '/')+1:])
}
