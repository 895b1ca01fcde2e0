package shell

import "google.golang.org/grpc/balancer"

// Counted is a subchannel that wraps one of gRPC's to observe how the calls on it end. gRPC accepts
// only its own subchannels from a picker. A policy that supports Counted therefore publishes the
// picker that the subchannel provides. That picker unwraps the subchannel and counts the call, so
// that no picker of a parent has to check each pick.
type Counted interface {
	balancer.SubConn
	// Picked registers a policy that supports Counted. It is called before Connect.
	Picked(user CountedUser)
	// Picker returns a picker of the subchannel. It may be called with any lock held.
	Picker() balancer.Picker
}

// CountedUser is a policy that picks by the pickers of Counted subchannels.
type CountedUser interface {
	// PickerChanged is called when Picker begins to return another picker. It must only queue an
	// event.
	PickerChanged()
}
