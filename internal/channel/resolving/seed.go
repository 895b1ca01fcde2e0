package resolving

import (
	"hash/maphash"
	"math/rand/v2"
	"reflect"

	"google.golang.org/grpc/resolver"
)

var processSeed = maphash.MakeSeed()

// seedOf returns a seed that differs between channels. It is derived from the pointer to the
// channel's metrics recorder. This pointer stays the same when a channel leaves idle mode and gRPC
// builds a new resolver, so the seed stays the same, too.
func seedOf(opts resolver.BuildOptions) uint64 {
	v := reflect.ValueOf(opts.MetricsRecorder)
	if v.Kind() != reflect.Pointer || v.Type().Elem().Size() == 0 { // pointers to zero-size values may be equal
		return rand.Uint64()
	}
	return maphash.Comparable(processSeed, opts.MetricsRecorder)
}
