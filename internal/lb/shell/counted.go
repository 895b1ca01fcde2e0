package shell

import "google.golang.org/grpc/balancer"

// Counted wraps a subchannel of gRPC to observe how its calls end. A channel's picker must return
// gRPC's own subchannel, and it would slow down picks if each policy on the way had to unwrap the
// result. So policies that know about Counted publish what Picker returns, and that picker returns
// gRPC's subchannel directly.
type Counted interface {
	balancer.SubConn
	// AddUser registers the policy that uses Picker. The user must call it before Connect.
	AddUser(user CountedUser)
	// Picker returns a picker that returns gRPC's subchannel. The caller may hold any lock.
	Picker() balancer.Picker
}

// Ender is a subchannel of a policy whose picker gives each call a Done function. If a policy below
// counts calls too, chaining two Done functions would cost more than the rest of the pick. So the
// lower policy leaves its own function to the Ender and doesn't set any on calls.
type Ender interface {
	// EndWith must be called before the subchannel is used. At each pick, done returns the function
	// to call when the call ends, or nil. The same pointer always means the same function.
	EndWith(done func() *func(balancer.DoneInfo))
}

type CountedUser interface {
	// PickerChanged is called when Picker returns something else. All it may do is queue an event.
	PickerChanged()
}
