package shell

import (
	"errors"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

// Queue makes calls wait.
var Queue = base.NewErrPicker(balancer.ErrNoSubConnAvailable)

// Connecting is the state of a child that has not reported yet.
func Connecting() balancer.State {
	return balancer.State{ConnectivityState: connectivity.Connecting, Picker: Queue}
}

// Failed is the state of a child that cannot serve because of err: calls fail with
// UNAVAILABLE and err's text, and those that wait for ready wait.
func Failed(err error) balancer.State {
	return balancer.State{ConnectivityState: connectivity.TransientFailure, Picker: Failing(Plain(err))}
}

// Failing returns a picker that fails calls with err. Calls that wait for ready wait.
// err must not be or wrap a status, which would end those, too.
func Failing(err error) balancer.Picker { return &failing{err} }

type failing struct{ err error }

// Pick fails.
func (f *failing) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return balancer.PickResult{}, f.err
}

// Failure returns the error that calls fail with.
func (f *failing) Failure() error { return f.err }

// FailureOf returns the error with which a picker fails calls, nil where the picker
// does not tell. It does not pick, because a foreign picker may connect or count when
// it does.
func FailureOf(picker balancer.Picker) error {
	if f, ok := picker.(interface{ Failure() error }); ok {
		return f.Failure()
	}
	return nil
}

// Plain returns err, or an error of the same text if err is or wraps a status. gRPC
// lets a status end every call, also those that wait for ready, and parents make
// pickers of the errors of updates. errors.Is answers as for err.
func Plain(err error) error {
	if err == nil {
		return nil
	}
	if _, holds := status.FromError(err); !holds {
		return err
	}
	return plain{err}
}

// plain does not embed the error, whose methods would reveal the status.
type plain struct{ err error }

func (p plain) Error() string { return p.err.Error() }

func (p plain) Is(target error) bool { return errors.Is(p.err, target) }
