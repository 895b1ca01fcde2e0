package feed

import (
	"runtime"
	"sync"
	"weak"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
)

// shared holds the *encoding of each cluster that nobody changes, by its weak pointer.
var shared sync.Map

type encoding struct {
	once  sync.Once
	bytes []byte
	err   error
}

// Share says that nobody will change a cluster. It is then encoded once, however many channels
// are told of it, and all of them keep that one encoding.
func Share(cluster *endpointv3.ClusterLoadAssignment) {
	key := weak.Make(cluster)
	if _, there := shared.LoadOrStore(key, new(encoding)); !there {
		runtime.AddCleanup(cluster, func(key weak.Pointer[endpointv3.ClusterLoadAssignment]) { shared.Delete(key) }, key)
	}
}

// Encoded returns a cluster in the form in which clusters are compared and kept. The caller does
// not change it.
func Encoded(cluster *endpointv3.ClusterLoadAssignment) ([]byte, error) {
	found, ok := shared.Load(weak.Make(cluster))
	if !ok {
		return encode(cluster)
	}
	e := found.(*encoding)
	e.once.Do(func() { e.bytes, e.err = encode(cluster) })
	return e.bytes, e.err
}

func encode(cluster *endpointv3.ClusterLoadAssignment) ([]byte, error) {
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(cluster)
	return append([]byte{}, encoded...), err // as long as it must be, and not nil
}
