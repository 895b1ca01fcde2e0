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

// Failed returns the state of a child that cannot take calls because of err. Wait-for-ready calls
// wait; others fail with UNAVAILABLE and the text of err.
func Failed(err error) balancer.State {
	return balancer.State{ConnectivityState: connectivity.TransientFailure, Picker: Failing(Plain(err))}
}

// Failing returns a picker whose calls fail with err. err must not contain a status error, which
// would fail wait-for-ready calls as well.
func Failing(err error) balancer.Picker { return &failing{err} }

type failing struct{ err error }

func (f *failing) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return balancer.PickResult{}, f.err
}

func (f *failing) Failure() error { return f.err }

// FailureOf returns the error with which calls on a picker fail, or nil if it is unknown. It does
// not call Pick: a picker of another module may start a connection or count a call.
func FailureOf(picker balancer.Picker) error {
	if f, ok := picker.(interface{ Failure() error }); ok {
		return f.Failure()
	}
	return nil
}

// Plain returns err if it does not contain a status error, and otherwise an error with the same
// text. gRPC fails even wait-for-ready calls if a picker returns a status error. errors.Is on the
// result is the same as on err.
func Plain(err error) error {
	if err == nil {
		return nil
	}
	if _, holds := status.FromError(err); !holds {
		return err
	}
	return plain{err}
}

// plain does not embed the error, because the error's methods would reveal the status.
type plain struct{ err error }

func (p plain) Error() string { return p.err.Error() }

func (p plain) Is(target error) bool { return errors.Is(p.err, target) }
