package resolving

import (
	"hash/maphash"
	"math/rand/v2"
	"reflect"

	"google.golang.org/grpc/resolver"
)

// process makes the seeds of processes differ.
var process = maphash.MakeSeed()

// seedOf returns a channel's seed, which differs from those of other channels. gRPC closes the
// resolver of an idle channel and builds another one later. The channel's metrics recorder stays
// the same, so its pointer identifies the channel without any state.
func seedOf(opts resolver.BuildOptions) uint64 {
	v := reflect.ValueOf(opts.MetricsRecorder)
	if v.Kind() != reflect.Pointer || v.Type().Elem().Size() == 0 { // pointers to zero-size values may be equal
		return rand.Uint64()
	}
	return maphash.Comparable(process, opts.MetricsRecorder)
}
