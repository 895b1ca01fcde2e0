package pickfirst

import (
	"sync/atomic"
	"weak"

	"google.golang.org/grpc/attributes"
	grpcpickfirst "google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

// healthEnabled returns true if a parent has asked for health updates, either with
// stateattr.EnableHealthListener or with grpc-go's function of the same name.
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

// lastMark caches the last result. A parent may pass the same attributes to 10,000 children, and
// comparing them each time takes longer than the rest of the update.
var lastMark atomic.Pointer[mark]

type mark struct {
	of     weak.Pointer[attributes.Attributes]
	marked bool
}

// markedByGRPC detects grpc-go's EnableHealthListener. It sets an attribute with a private key, so
// we can't look it up. What we can do is set it again and see if that makes a difference.
func markedByGRPC(state resolver.State) (marked bool) {
	// Attributes.Equal panics if an attribute isn't comparable.
	defer func() {
		if recover() != nil {
			logger.Warningf("pick_first: an attribute of the resolver's state cannot be compared, so gRPC-Go's EnableHealthListener is not detected")
		}
	}()
	return grpcpickfirst.EnableHealthListener(state).Attributes.Equal(state.Attributes)
}
