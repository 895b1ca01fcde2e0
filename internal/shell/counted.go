package shell

import "google.golang.org/grpc/balancer"

// Counted is a subchannel that wraps one of gRPC to observe how calls on it end. gRPC accepts only
// its own subchannels from a picker. If every policy above had to unwrap the picked subchannel,
// picks would be slower. A policy that supports Counted therefore publishes the result of Picker,
// which picks gRPC's subchannel.
type Counted interface {
	balancer.SubConn
	// Picked is called by a policy that uses Picker, before Connect.
	Picked(user CountedUser)
	// Picker returns a picker that picks this subchannel. It may be called with any lock held.
	Picker() balancer.Picker
}

// CountedUser is a policy that uses the pickers of Counted subchannels.
type CountedUser interface {
	// PickerChanged is called when Picker returns another picker than before. It may only queue an
	// event.
	PickerChanged()
}
