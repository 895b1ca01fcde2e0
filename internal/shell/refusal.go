package shell

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
)

// Refusal is the error of calls to a child that has refused its update. It contains no status, so
// that calls that wait for ready do wait.
type Refusal struct {
	who string
	err error
}

func (r *Refusal) Error() string { return fmt.Sprintf("%s refused its update: %v", r.who, r.err) }

func (r *Refusal) Unwrap() error { return r.err }

// AllFailed is the error of calls if all endpoints of a policy have failed.
type AllFailed struct {
	Endpoints int
	One       error
}

func (a *AllFailed) Error() string {
	return fmt.Sprintf("all %d endpoints failed, one of them with: %v", a.Endpoints, a.One)
}

func (a *AllFailed) Unwrap() error { return a.One }

// Refused handles the error of a child that has refused its update. It returns the error of calls
// to the child, and whether the child counts as failed because of err.
//
// A child whose last report is READY or IDLE stays in use. refusal is nil if the child has reported
// TRANSIENT_FAILURE and err is only balancer.ErrBadResolverState: the reported error is then more
// specific.
//
// child is the child's title in errors and logs, such as "the child".
func (s *Shell) Refused(child string, reported connectivity.State, err error) (refusal error, counts bool) {
	who := s.name + ": " + child
	refusal = &Refusal{who, Plain(err)}
	if s.updating { // without an update, there is no caller that could receive the error
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

// Refuse adds err to the errors of the current update. The update returns them if the policy itself
// has failed.
func (s *Shell) Refuse(err error) { s.refusals = append(s.refusals, err) }

type refusals []error

// join returns the first error that is not balancer.ErrBadResolverState, and adds the number of
// other errors to it. If there is none, it returns balancer.ErrBadResolverState itself, because
// gRPC compares errors with ==.
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
