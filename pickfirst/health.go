package pickfirst

import (
	"sync/atomic"
	"weak"

	"google.golang.org/grpc/attributes"
	grpcpickfirst "google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/stateattr"
)

// healthEnabled reports whether stateattr.EnableHealthListener or grpc-go's EnableHealthListener
// marked state.
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

// lastMark caches the last result for grpc-go's mark. A parent passes the same attributes to up to
// 10,000 children, and comparing them costs more than the rest of an update.
var lastMark atomic.Pointer[mark]

type mark struct {
	of     weak.Pointer[attributes.Attributes]
	marked bool
}

// markedByGRPC reports whether grpc-go's function marked state. The attribute key is private, but
// marking a marked state again changes nothing.
func markedByGRPC(state resolver.State) (marked bool) {
	// Equal panics if a value cannot be compared.
	defer func() {
		if recover() != nil {
			logger.Warningf("pick_first: an attribute of the resolver's state cannot be compared, so gRPC-Go's EnableHealthListener is not detected")
		}
	}()
	return grpcpickfirst.EnableHealthListener(state).Attributes.Equal(state.Attributes)
}
