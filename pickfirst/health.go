package pickfirst

import (
	"sync/atomic"
	"weak"

	"google.golang.org/grpc/attributes"
	grpcpickfirst "google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/stateattr"
)

// healthEnabled reports whether the parent has requested health updates, with
// stateattr.EnableHealthListener or with grpc-go's function of that name.
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

// lastMark caches the last result of markedByGRPC. A parent passes the same attributes to up to
// 10,000 children. Comparing them each time would take longer than the rest of the update.
var lastMark atomic.Pointer[mark]

type mark struct {
	of     weak.Pointer[attributes.Attributes]
	marked bool
}

// markedByGRPC reports whether grpc-go's EnableHealthListener has marked state. The key of its
// attribute is private, but marking a marked state again yields equal attributes.
func markedByGRPC(state resolver.State) (marked bool) {
	// Equal panics if an attribute cannot be compared.
	defer func() {
		if recover() != nil {
			logger.Warningf("pick_first: an attribute of the resolver's state cannot be compared, so gRPC-Go's EnableHealthListener is not detected")
		}
	}()
	return grpcpickfirst.EnableHealthListener(state).Attributes.Equal(state.Attributes)
}
