package shell

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
)

// Refusal is what calls fail with while the child in use is one that returned an error
// from its update. It wraps no status, so that calls that wait for ready wait.
type Refusal struct {
	who string // of which policy
	err error
}

// Error says which child of which policy refused its update, and why.
func (r *Refusal) Error() string { return fmt.Sprintf("%s rejected its update: %v", r.who, r.err) }

// Unwrap returns the child's error.
func (r *Refusal) Unwrap() error { return r.err }

// AllFailed is what calls fail with where each of several endpoints has failed.
type AllFailed struct {
	Endpoints int
	Last      error // that of the one that failed last
}

// Error says how many failed, and with what the last did.
func (a *AllFailed) Error() string {
	return fmt.Sprintf("all %d endpoints failed, the last with: %v", a.Endpoints, a.Last)
}

// Unwrap returns the error of the one that failed last.
func (a *AllFailed) Unwrap() error { return a.Last }

// Refused handles an error from the update of a child whose last report is reported. It
// returns the error that calls to the child fail with from now on if that counts: not if
// it is READY or IDLE, which then stays in use, nor if it has said itself what is wrong,
// which balancer.ErrBadResolverState does not: then nothing is returned.
//
// child is what people call it, such as "the child".
func (s *Shell) Refused(child string, reported connectivity.State, err error) (refusal error, counts bool) {
	who := s.name + ": " + child
	refusal = &Refusal{who, Plain(err)}
	if s.updating { // otherwise there is nobody to return it to
		s.Refuse(refusal)
	}
	says := !errors.Is(err, balancer.ErrBadResolverState)
	switch {
	case reported == connectivity.TransientFailure && !says:
		return nil, false
	case reported == connectivity.Ready || reported == connectivity.Idle:
		Logger.Warningf("%s rejected its update and stays %v: %v", who, reported, err)
		return refusal, false
	case says:
		Logger.Warningf("%s rejected its update and counts as failed: %v", who, err)
	}
	return refusal, true
}

// Refuse has the update under way return err if nothing else is wrong, and the policy
// has failed.
func (s *Shell) Refuse(err error) { s.refusals = append(s.refusals, err) }

// refusals are those of one update.
type refusals []error

// join returns one error: the first that is not balancer.ErrBadResolverState, with
// the number of the others; or else that one itself, since gRPC's callers compare.
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
