package pickfirst

import (
	"sync/atomic"
	"weak"

	"google.golang.org/grpc/attributes"
	grpcpickfirst "google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/resolver"
)

type healthKey struct{}

// EnableHealthListener returns state with the mark that makes the policy listen to
// the health of the server to which it is connected, through gRPC's generic health
// listener: client-side health checks, outlier detection. READY then waits for the
// server to be healthy, and TRANSIENT_FAILURE is published while it is not; the
// connection stays. It counts from the next connection.
//
// A parent with many pick_first children calls it on what it passes to them. A state
// marked by gRPC-Go's own pickfirst.EnableHealthListener has the same effect.
func EnableHealthListener(state resolver.State) resolver.State {
	state.Attributes = state.Attributes.WithValue(healthKey{}, true)
	return state
}

// healthEnabled returns whether state was marked.
func healthEnabled(state resolver.State) bool {
	if state.Attributes == nil {
		return false
	}
	if state.Attributes.Value(healthKey{}) != nil {
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
