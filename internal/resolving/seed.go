package resolving

import (
	"hash/maphash"
	"math/rand/v2"
	"reflect"

	"google.golang.org/grpc/resolver"
)

// process makes the seeds of this process differ from those of others.
var process = maphash.MakeSeed()

// seedOf returns the seed of a channel, which is another one for each. gRPC closes the resolver of
// a channel that becomes idle, and builds another one later: what stays the channel's own is its
// recorder of metrics, a pointer. So nothing has to be kept, nor forgotten.
func seedOf(opts resolver.BuildOptions) uint64 {
	v := reflect.ValueOf(opts.MetricsRecorder)
	if v.Kind() != reflect.Pointer || v.Type().Elem().Size() == 0 { // pointers to nothing may be equal
		return rand.Uint64()
	}
	return maphash.Comparable(process, opts.MetricsRecorder)
}
