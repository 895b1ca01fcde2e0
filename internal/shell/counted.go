package shell

import "google.golang.org/grpc/balancer"

// Counted is a subchannel that wraps a subchannel of gRPC, to observe how calls on it end. A picker
// must return gRPC's own subchannel. If every policy above had to unwrap it, picks would be slower.
// A policy that supports Counted therefore publishes the result of Picker, which picks gRPC's
// subchannel.
type Counted interface {
	balancer.SubConn
	// Picked is called before Connect by a policy that uses Picker.
	Picked(user CountedUser)
	// Picker returns a picker that picks this subchannel. The caller may hold any lock.
	Picker() balancer.Picker
}

// CountedUser is a policy that uses the pickers of Counted subchannels.
type CountedUser interface {
	// PickerChanged is called when Picker returns another picker than before. It may only queue an
	// event.
	PickerChanged()
}
