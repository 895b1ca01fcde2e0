package live

import (
	"reflect"
	"sync/atomic"

	"google.golang.org/grpc/connectivity"
)

// IsClosed reports whether a channel is closed. Policies do not know, because gRPC also closes the
// policies of channels that become idle. owner is gRPC's channelz record of the channel. Its type
// is internal, so IsClosed uses reflection. If that fails, IsClosed returns false.
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
