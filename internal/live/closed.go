package live

import (
	"reflect"
	"sync/atomic"

	"google.golang.org/grpc/connectivity"
)

// IsClosed returns whether a channel was closed, and is not merely idle: gRPC closes the
// policies of both. owner is gRPC's own record of the channel, for channelz; its type is
// internal, though its fields are exported, so this asks by their names. Where that fails
// the channel counts as idle.
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
