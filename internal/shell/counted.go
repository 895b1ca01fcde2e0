package shell

import "google.golang.org/grpc/balancer"

// Counted is a subchannel that a policy puts in the place of gRPC's own, to hear how the
// calls on it end. gRPC accepts only its own from a picker. So a policy that knows
// Counted asks it once what its pickers are to return. Then no picker above has to look
// at each pick, and one function hears of all calls.
type Counted interface {
	balancer.SubConn
	// Picked says that user knows Counted. It is called before Connect.
	Picked(user CountedUser)
	// PickResult returns what a picker returns that picks the subchannel. It may be
	// called with any lock held.
	PickResult() balancer.PickResult
}

// CountedUser is a policy whose pickers return what a Counted says.
type CountedUser interface {
	// PickResultChanged is called when PickResult returns something else from now on.
	// It only queues.
	PickResultChanged()
}
