package live

import (
	"reflect"
	"sync/atomic"

	"google.golang.org/grpc/connectivity"
)

// IsClosed reports whether a channel is closed. The closing of its policies does not show this,
// because gRPC also closes the policies of a channel that becomes idle. owner is gRPC's channelz
// record of the channel, which IsClosed reads by reflection, because its type is internal. If this
// fails, IsClosed returns false.
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
