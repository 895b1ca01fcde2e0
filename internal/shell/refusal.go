package shell

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
)

// Refusal is the error of calls while the child in use is one that refused its update.
// It wraps no status, so that calls that wait for ready wait.
type Refusal struct {
	who string // which child of which policy
	err error
}

// Error says which child of which policy refused its update, and why.
func (r *Refusal) Error() string { return fmt.Sprintf("%s refused its update: %v", r.who, r.err) }

// Unwrap returns the child's error.
func (r *Refusal) Unwrap() error { return r.err }

// AllFailed is what calls fail with where each of several endpoints has failed.
type AllFailed struct {
	Endpoints int
	One       error // that of one of them
}

// Error says how many failed, and with what one of them did.
func (a *AllFailed) Error() string {
	return fmt.Sprintf("all %d endpoints failed, one of them with: %v", a.Endpoints, a.One)
}

// Unwrap returns that error.
func (a *AllFailed) Unwrap() error { return a.One }

// Refused handles err, with which a child refused its update; reported is the child's
// last report. It returns the error that calls to the child fail with from now on, if
// that counts. It does not count if the child is READY or IDLE, which then stays in use.
// Nor does it if the child has reported TRANSIENT_FAILURE and err is only
// balancer.ErrBadResolverState, because the report says more: then refusal is nil.
//
// child is what people call it, such as "the child".
func (s *Shell) Refused(child string, reported connectivity.State, err error) (refusal error, counts bool) {
	who := s.name + ": " + child
	refusal = &Refusal{who, Plain(err)}
	if s.updating { // otherwise nobody is there to return it to
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

// Refuse adds err to the errors of the update under way, which returns one of them if
// the policy has failed.
func (s *Shell) Refuse(err error) { s.refusals = append(s.refusals, err) }

// refusals are the errors of one update.
type refusals []error

// join returns one error: the first that is not balancer.ErrBadResolverState, with the
// number of the others; or else that one itself, because gRPC compares with ==.
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
