package shell

import (
	"errors"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

var ErrNoEndpoints = errors.New("no endpoints: the resolver returned none, or none with a path to this policy")

var Queue = base.NewErrPicker(balancer.ErrNoSubConnAvailable)

func Connecting() balancer.State {
	return balancer.State{ConnectivityState: connectivity.Connecting, Picker: Queue}
}

// Failed returns the state of a child that can't take calls. They fail with UNAVAILABLE and the
// text of err, unless they wait for ready.
func Failed(err error) balancer.State {
	return balancer.State{ConnectivityState: connectivity.TransientFailure, Picker: Failing(Plain(err))}
}

// Fixed is a picker that returns SubConn for every call. A policy that recognizes it can keep
// SubConn and never call Pick.
type Fixed struct{ SubConn balancer.SubConn }

func (f *Fixed) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return balancer.PickResult{SubConn: f.SubConn}, nil
}

// Failing returns a picker that fails calls with err, which must not contain a status. That would
// also fail calls that wait for ready.
func Failing(err error) balancer.Picker { return &failingPicker{err} }

type failingPicker struct{ err error }

func (f *failingPicker) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return balancer.PickResult{}, f.err
}

func (f *failingPicker) Failure() error { return f.err }

// FailureOf returns the error with which a picker fails calls, or nil if there's no way to tell. We
// can't call Pick to find out, because a picker of another module might start a connection or count
// a call.
func FailureOf(picker balancer.Picker) error {
	if f, ok := picker.(interface{ Failure() error }); ok {
		return f.Failure()
	}
	return nil
}

var ErrEjected = errors.New("the endpoint is ejected because calls to it failed")

// Plain strips the status from err, if it has one. When a picker returns a status, gRPC also fails
// calls that wait for ready, and we don't want that. The result has the same text, and errors.Is
// treats it like err.
func Plain(err error) error {
	if err == nil {
		return nil
	}
	if _, isStatus := status.FromError(err); !isStatus {
		return err
	}
	return plainError{err}
}

// plainError doesn't embed the error, or else its methods would reveal the status.
type plainError struct{ err error }

func (p plainError) Error() string { return p.err.Error() }

func (p plainError) Is(target error) bool { return errors.Is(p.err, target) }
