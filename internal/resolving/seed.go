package resolving

import (
	"hash/maphash"
	"math/rand/v2"
	"reflect"

	"google.golang.org/grpc/resolver"
)

var process = maphash.MakeSeed()

// seedOf returns a seed that differs between channels. It is derived from the pointer to the
// channel's metrics recorder. When a channel leaves idle mode, gRPC builds a new resolver, but this
// pointer stays the same, and so does the seed.
func seedOf(opts resolver.BuildOptions) uint64 {
	v := reflect.ValueOf(opts.MetricsRecorder)
	if v.Kind() != reflect.Pointer || v.Type().Elem().Size() == 0 { // pointers to zero-size values may be equal
		return rand.Uint64()
	}
	return maphash.Comparable(process, opts.MetricsRecorder)
}
