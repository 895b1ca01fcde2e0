package shell

import "google.golang.org/grpc/balancer"

// Counted wraps a subchannel of gRPC, to observe how calls on it end. The picker of a channel must
// return gRPC's own subchannel, and picks would be slower if each policy unwrapped the result. A
// policy that supports Counted therefore publishes what Picker returns: this picker returns gRPC's
// subchannel directly.
type Counted interface {
	balancer.SubConn
	// AddUser registers user as the policy that uses Picker. The user calls it before Connect.
	AddUser(user CountedUser)
	// Picker returns a picker that returns gRPC's subchannel. The caller may hold any lock.
	Picker() balancer.Picker
}

// Ender is a subchannel of a policy whose picker gives each call a Done function. Passing on to
// another one costs more than the rest of a pick, so a policy below that counts calls as well
// leaves its own to the Ender, and gives none to calls.
type Ender interface {
	// EndWith is called before the subchannel is used. done is called at each pick. It returns the
	// function to call when the call ends, which may be nil. The same pointer is the same function.
	EndWith(done func() *func(balancer.DoneInfo))
}

// CountedUser is a policy that uses the Picker method of Counted subchannels.
type CountedUser interface {
	// PickerChanged is called when Picker returns another result. Do no more here than queue an
	// event.
	PickerChanged()
}
