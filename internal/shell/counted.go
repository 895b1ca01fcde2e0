package shell

import "google.golang.org/grpc/balancer"

// Counted is a subchannel that a policy has put in the place of gRPC's own, in order to
// hear how the calls on it end. gRPC takes its own alone from a picker. So a policy that
// knows Counted asks it, once, for what its pickers are to return: then no picker above
// has to look at each pick, and the same function hears of all calls.
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
