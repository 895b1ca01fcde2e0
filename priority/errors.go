package priority

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/hierarchy"
	core "github.com/understudy-lb/understudy/internal/core/priority"
)

// emptyError returns what calls fail with where there are no priorities, and why there
// are none, if whoever sent the update said so.
func (p *policy) emptyError() error {
	if why := hierarchy.ChannelOf(p.state).Empty; why != "" {
		return fmt.Errorf("%w: %s", core.ErrEmpty, why)
	}
	return core.ErrEmpty
}

// rejection is what calls fail with while the child in use is one that returned an
// error from its update. It is not a status error, so that calls that wait for
// ready wait.
type rejection struct {
	child string
	err   error
}

func (r *rejection) Error() string {
	return fmt.Sprintf("priority: child %q rejected its update: %v", r.child, r.err)
}

func (r *rejection) Unwrap() error { return r.err }

// updateErrors are the errors of children from one update.
type updateErrors []error

func (e *updateErrors) add(child string, err error) {
	*e = append(*e, &rejection{child, err})
}

// join returns one error: the first that is not balancer.ErrBadResolverState, with
// the number of the others; or else that one itself, since gRPC's callers compare.
func (e updateErrors) join() error {
	for _, err := range e {
		if errors.Is(err, balancer.ErrBadResolverState) {
			continue
		}
		if len(e) > 1 {
			return fmt.Errorf("%w (and %d more)", err, len(e)-1)
		}
		return err
	}
	if len(e) > 0 {
		return balancer.ErrBadResolverState
	}
	return nil
}
