package resolving

import (
	"hash/maphash"
	"math/rand/v2"
	"reflect"

	"google.golang.org/grpc/resolver"
)

// process is a random seed that differs between processes.
var process = maphash.MakeSeed()

// seedOf returns a seed that differs between channels. It stays the same when a channel was idle
// and gRPC builds a new resolver, because it is derived from the pointer to the channel's metrics
// recorder, which stays the same.
func seedOf(opts resolver.BuildOptions) uint64 {
	v := reflect.ValueOf(opts.MetricsRecorder)
	if v.Kind() != reflect.Pointer || v.Type().Elem().Size() == 0 { // pointers to values of size zero may be equal
		return rand.Uint64()
	}
	return maphash.Comparable(process, opts.MetricsRecorder)
}
