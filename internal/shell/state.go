package shell

import (
	"errors"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

// Queue is a picker that makes calls wait.
var Queue = base.NewErrPicker(balancer.ErrNoSubConnAvailable)

// Connecting returns the state of a child that has not reported yet.
func Connecting() balancer.State {
	return balancer.State{ConnectivityState: connectivity.Connecting, Picker: Queue}
}

// Failed returns the state of a child that cannot receive calls because of err. Calls fail with
// UNAVAILABLE and the text of err, unless they wait for ready.
func Failed(err error) balancer.State {
	return balancer.State{ConnectivityState: connectivity.TransientFailure, Picker: Failing(Plain(err))}
}

// Failing returns a picker that makes calls fail with err. err must not contain a status, because a
// status error would also fail calls that wait for ready.
func Failing(err error) balancer.Picker { return &failing{err} }

type failing struct{ err error }

func (f *failing) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return balancer.PickResult{}, f.err
}

func (f *failing) Failure() error { return f.err }

// FailureOf returns the error that a picker's calls fail with, or nil if it is unknown. It does not
// call Pick, because this could have side effects: a picker of another module may start a
// connection or count a call.
func FailureOf(picker balancer.Picker) error {
	if f, ok := picker.(interface{ Failure() error }); ok {
		return f.Failure()
	}
	return nil
}

// Plain returns err itself if it contains no status, and otherwise an error with the same text and
// no status. If a picker returned a status, gRPC would fail even calls that wait for ready.
// errors.Is has the same results for the returned error as for err.
func Plain(err error) error {
	if err == nil {
		return nil
	}
	if _, holds := status.FromError(err); !holds {
		return err
	}
	return plain{err}
}

// plain holds the error in a field instead of embedding it, because its methods would reveal the
// status.
type plain struct{ err error }

func (p plain) Error() string { return p.err.Error() }

func (p plain) Is(target error) bool { return errors.Is(p.err, target) }
