package live

import (
	"reflect"
	"sync/atomic"

	"google.golang.org/grpc/connectivity"
)

// IsClosed returns true if a channel is closed. We can't learn that from its policies, because gRPC
// also closes them when a channel becomes idle. So we look into owner, which is gRPC's channelz
// record of the channel. Its type is internal, so this takes reflection. If anything goes wrong, we
// return false.
func IsClosed(owner any) (closed bool) {
	defer func() {
		if recover() != nil {
			closed = false
		}
	}()
	if owner == nil {
		return false
	}
	field := reflect.ValueOf(owner).Elem().FieldByName("ChannelMetrics").FieldByName("State")
	state, ok := field.Addr().Interface().(*atomic.Pointer[connectivity.State])
	if !ok {
		return false
	}
	last := state.Load()
	return last != nil && *last == connectivity.Shutdown
}
