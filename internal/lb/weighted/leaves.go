package weighted

import (
	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/lb/edf"
	"github.com/understudy-lb/understudy/internal/lb/shell"
)

// fixedLeaves is used if every child has a fixed subchannel. Picks are cheaper then: we go from the
// schedule straight to a subchannel, without looking at the child's picker, and can skip any picker
// with a single child. scheduler is nil if some picker isn't fixed.
type fixedLeaves struct {
	scheduler *edf.Scheduler
	subConns  []balancer.SubConn
}

func fixedLeavesOf(scheduler *edf.Scheduler, n int, picker func(i int) balancer.Picker) fixedLeaves {
	if _, ok := picker(0).(*shell.Fixed); !ok {
		return fixedLeaves{}
	}
	subConns := make([]balancer.SubConn, n)
	for i := range subConns {
		fixed, ok := picker(i).(*shell.Fixed)
		if !ok {
			return fixedLeaves{}
		}
		subConns[i] = fixed.SubConn
	}
	return fixedLeaves{scheduler, subConns}
}
