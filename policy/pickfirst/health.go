package pickfirst

import (
	"sync/atomic"
	"weak"

	"google.golang.org/grpc/attributes"
	grpcpickfirst "google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/stateattr"
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

// lastMark caches the last result of markedByGRPC. A parent may pass the same attributes to 10,000
// children. Comparing the attributes for each child would take longer than the rest of the update.
var lastMark atomic.Pointer[mark]

type mark struct {
	of     weak.Pointer[attributes.Attributes]
	marked bool
}

// markedByGRPC reports whether state was marked by EnableHealthListener of grpc-go. The key of that
// attribute is private. Therefore state is marked again: if this does not change the attributes, it
// was marked before.
func markedByGRPC(state resolver.State) (marked bool) {
	// Attributes.Equal panics if an attribute cannot be compared.
	defer func() {
		if recover() != nil {
			logger.Warningf("pick_first: an attribute of the resolver's state cannot be compared, so gRPC-Go's EnableHealthListener is not detected")
		}
	}()
	return grpcpickfirst.EnableHealthListener(state).Attributes.Equal(state.Attributes)
}
