package live

import (
	"reflect"
	"sync/atomic"

	"google.golang.org/grpc/connectivity"
)

// IsClosed is true if a channel is closed. Its policies cannot tell us this: gRPC also closes them
// when a channel becomes idle. So we look at owner, gRPC's channelz record of the channel, by
// reflection, as its type is internal. If this fails, the result is false.
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
