package pickfirst

import (
	"sync/atomic"
	"weak"

	"google.golang.org/grpc/attributes"
	grpcpickfirst "google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

// The parent asks for health updates with stateattr.EnableHealthListener, or with grpc-go's
// function of that name.
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

// A parent may pass the same attributes to 10,000 children. Comparing them for each child would
// take longer than the rest of the update, so we cache the last result.
var lastMark atomic.Pointer[mark]

type mark struct {
	of     weak.Pointer[attributes.Attributes]
	marked bool
}

// The key of the attribute that grpc-go's EnableHealthListener sets is private. So we mark state
// again: if this does not change the attributes, it was marked before.
func markedByGRPC(state resolver.State) (marked bool) {
	// Attributes.Equal panics if an attribute cannot be compared.
	defer func() {
		if recover() != nil {
			logger.Warningf("pick_first: an attribute of the resolver's state cannot be compared, so gRPC-Go's EnableHealthListener is not detected")
		}
	}()
	return grpcpickfirst.EnableHealthListener(state).Attributes.Equal(state.Attributes)
}
