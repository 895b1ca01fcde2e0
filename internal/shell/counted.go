package shell

import "google.golang.org/grpc/balancer"

// Counted is a subchannel that wraps one of gRPC's to observe how the calls on it end. gRPC accepts
// only its own subchannels from a picker. So a policy that supports Counted publishes the
// subchannel's Picker, and no picker of a parent has to unwrap each pick.
type Counted interface {
	balancer.SubConn
	// Picked registers a policy that supports Counted. It is called before Connect.
	Picked(user CountedUser)
	// Picker returns a picker of the subchannel. It may be called with any lock held.
	Picker() balancer.Picker
}

// CountedUser is a policy that uses the pickers of Counted subchannels.
type CountedUser interface {
	// PickerChanged is called when Picker begins to return another picker. It must only queue an
	// event.
	PickerChanged()
}
