package shell

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
)

// Refusal is the error of calls to a child that has refused its update. It never contains a status,
// since that would also fail calls that wait for ready.
type Refusal struct {
	subject string
	err     error
}

func (r *Refusal) Error() string { return fmt.Sprintf("%s refused its update: %v", r.subject, r.err) }

func (r *Refusal) Unwrap() error { return r.err }

type AllFailed struct {
	Endpoints int
	Example   error
}

func (a *AllFailed) Error() string {
	return fmt.Sprintf("all %d endpoints failed, one of them with: %v", a.Endpoints, a.Example)
}

func (a *AllFailed) Unwrap() error { return a.Example }

// Refused handles err, the error of a child that has refused its update. It returns the error that
// calls to the child should get, and whether the child now counts as failed.
//
// If the child's last report was READY or IDLE, it stays in use. If it was TRANSIENT_FAILURE and
// err is just balancer.ErrBadResolverState, refusal is nil because the reported error is more
// specific.
//
// child is what errors and logs call the child, e.g. "the child".
func (s *Shell) Refused(child string, reported connectivity.State, err error) (refusal error, counts bool) {
	subject := s.name + ": " + child
	refusal = &Refusal{subject, Plain(err)}
	if s.updating { // outside of updates, there's nobody to return the error to
		s.Refuse(refusal)
	}
	isSpecific := !errors.Is(err, balancer.ErrBadResolverState)
	switch {
	case reported == connectivity.TransientFailure && !isSpecific:
		return nil, false
	case reported == connectivity.Ready || reported == connectivity.Idle:
		Logger.Warningf("%s refused its update and stays %v: %v", subject, reported, err)
		return refusal, false
	case isSpecific:
		Logger.Warningf("%s refused its update and counts as failed: %v", subject, err)
	}
	return refusal, true
}

// Refuse adds err to the errors of the current update. UpdateClientConnState only returns them if
// the policy itself has failed.
func (s *Shell) Refuse(err error) { s.refusals = append(s.refusals, err) }

type refusals []error

// join returns the first error other than balancer.ErrBadResolverState, and adds how many others
// there are. If there is none, it has to return balancer.ErrBadResolverState itself, as gRPC
// compares it with ==.
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
