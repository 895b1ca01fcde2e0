package shell

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
)

// Refusal is the error of calls to a child that refused its update. It wraps no status error, so
// that wait-for-ready calls wait.
type Refusal struct {
	who string
	err error
}

func (r *Refusal) Error() string { return fmt.Sprintf("%s refused its update: %v", r.who, r.err) }

func (r *Refusal) Unwrap() error { return r.err }

// AllFailed is the error of calls if each of several endpoints has failed.
type AllFailed struct {
	Endpoints int
	One       error
}

func (a *AllFailed) Error() string {
	return fmt.Sprintf("all %d endpoints failed, one of them with: %v", a.Endpoints, a.One)
}

func (a *AllFailed) Unwrap() error { return a.One }

// Refused handles the error with which a child refused its update. It returns the error that calls
// to the child fail with, and reports whether the child counts as failed because of it.
//
// A child whose last report is READY or IDLE stays in use. A child that has reported
// TRANSIENT_FAILURE keeps its own, more specific error if err is only balancer.ErrBadResolverState;
// refusal is nil then.
//
// child is the child's title, such as "the child".
func (s *Shell) Refused(child string, reported connectivity.State, err error) (refusal error, counts bool) {
	who := s.name + ": " + child
	refusal = &Refusal{who, Plain(err)}
	if s.updating { // outside an update, there is no caller to return the error to
		s.Refuse(refusal)
	}
	says := !errors.Is(err, balancer.ErrBadResolverState)
	switch {
	case reported == connectivity.TransientFailure && !says:
		return nil, false
	case reported == connectivity.Ready || reported == connectivity.Idle:
		Logger.Warningf("%s refused its update and stays %v: %v", who, reported, err)
		return refusal, false
	case says:
		Logger.Warningf("%s refused its update and counts as failed: %v", who, err)
	}
	return refusal, true
}

// Refuse adds err to the errors of the current update. The update returns one of these errors if
// the policy has failed.
func (s *Shell) Refuse(err error) { s.refusals = append(s.refusals, err) }

type refusals []error

// join returns the first error that is not balancer.ErrBadResolverState, with the number of the
// others. If there is none, it returns balancer.ErrBadResolverState unwrapped, because gRPC
// compares with ==.
func (r refusals) join() error {
	for _, err := range r {
		if errors.Is(err, balancer.ErrBadResolverState) {
			continue
		}
		if len(r) > 1 {
			return fmt.Errorf("%w (and %d more)", err, len(r)-1)
		}
		return err
	}
	if len(r) > 0 {
		return balancer.ErrBadResolverState
	}
	return nil
}
