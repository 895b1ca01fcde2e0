package weighted

import (
	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/lb/edf"
	"github.com/understudy-lb/understudy/internal/lb/shell"
)

// Picks are cheaper if every child has a fixed subchannel: we then read the schedule and one
// subchannel, but not the child's picker, and skip pickers that have a single child. scheduler is
// nil if a child's picker is not fixed.
type fixedLeaves struct {
	scheduler *edf.Scheduler
	subConns  []balancer.SubConn
}

func fixedLeavesOf(scheduler *edf.Scheduler, pickers []balancer.Picker) fixedLeaves {
	if _, ok := pickers[0].(*shell.Fixed); !ok {
		return fixedLeaves{}
	}
	subConns := make([]balancer.SubConn, len(pickers))
	for i, picker := range pickers {
		fixed, ok := picker.(*shell.Fixed)
		if !ok {
			return fixedLeaves{}
		}
		subConns[i] = fixed.SubConn
	}
	return fixedLeaves{scheduler, subConns}
}
