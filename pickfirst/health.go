package pickfirst

import (
	"sync/atomic"
	"weak"

	"google.golang.org/grpc/attributes"
	grpcpickfirst "google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/stateattr"
)

// healthEnabled returns whether state was marked, by our own parents or by gRPC-Go's
// EnableHealthListener.
func healthEnabled(state resolver.State) bool {
	if state.Attributes == nil {
		return false
	}
	if stateattr.HealthListener(state) {
		return true
	}
	of := weak.Make(state.Attributes)
	if last := lastMark.Load(); last != nil && last.of == of {
		return last.marked
	}
	m := &mark{of: of, marked: markedByGRPC(state)}
	lastMark.Store(m)
	return m.marked
}

// lastMark is the last answer about gRPC-Go's mark. A parent passes the same
// attributes to each of maybe 10,000 children, and comparing them costs more than
// the rest of an update, the more so the larger the values in them are.
var lastMark atomic.Pointer[mark]

type mark struct {
	of     weak.Pointer[attributes.Attributes]
	marked bool
}

// markedByGRPC returns whether gRPC-Go's own function marked state. Its key is
// private, but marking a marked state again changes nothing.
func markedByGRPC(state resolver.State) (marked bool) {
	// Equal panics on a value that cannot be compared: then nobody can tell.
	defer func() {
		if recover() != nil {
			logger.Warningf("pick_first: an attribute of the resolver's state cannot be compared: no health checks by gRPC-Go's mark")
		}
	}()
	return grpcpickfirst.EnableHealthListener(state).Attributes.Equal(state.Attributes)
}
