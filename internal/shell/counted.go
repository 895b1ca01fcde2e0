package shell

import "google.golang.org/grpc/balancer"

// Counted is a subchannel that wraps a subchannel of gRPC, to observe how calls on it end. A picker
// must finally return gRPC's own subchannel. If each policy above had to unwrap the result, picks
// would be slower. A policy that supports Counted therefore publishes the result of Picker, which
// returns gRPC's subchannel directly.
type Counted interface {
	balancer.SubConn
	// Picked tells the subchannel that user uses Picker. user calls it before Connect.
	Picked(user CountedUser)
	// Picker returns a picker that returns gRPC's subchannel. The caller may hold any lock.
	Picker() balancer.Picker
}

// CountedUser is a policy that uses the Picker method of Counted subchannels.
type CountedUser interface {
	// PickerChanged is called when the result of Picker has changed. It must not do more than queue an
	// event.
	PickerChanged()
}
