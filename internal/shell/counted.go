package shell

import "google.golang.org/grpc/balancer"

// Counted is a subchannel that a policy puts in the place of gRPC's own, to hear how the
// calls on it end. gRPC accepts only its own from a picker. So a policy that knows
// Counted publishes the picker that it is given. Then no picker above has to look
// at each pick, and one function hears of all calls.
type Counted interface {
	balancer.SubConn
	// Picked says that user knows Counted. It is called before Connect.
	Picked(user CountedUser)
	// Picker returns a picker of the subchannel. It may be called with any lock held.
	Picker() balancer.Picker
}

// CountedUser is a policy whose pickers pick by those of a Counted.
type CountedUser interface {
	// PickerChanged is called when Picker returns another one from now on. It only queues.
	PickerChanged()
}
