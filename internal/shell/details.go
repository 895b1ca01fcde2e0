package shell

import (
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/core/weightedtarget"
)

// Priority is the part of a snapshot that package priority's policy adds.
type Priority struct {
	// InUse is the name of the child in use, or "".
	InUse string
	Since time.Time // when InUse last changed
	// Unused are the titles of the priorities that were not needed so far, in order.
	Unused []string
}

// PriorityChild is the part of a ChildSnapshot that package priority's policy adds.
type PriorityChild struct {
	CountsAs priority.State
	Since    time.Time // last change of CountsAs
	// Priority is the child's priority, or -1 if the child is deactivated.
	Priority  int
	Endpoints int
	// Why explains why the child has failed since it was last READY, or what is wrong with a READY
	// child.
	Why string
	// Failover is when the child will count as failed, Failback when it will take over from the
	// priority in use, and Deactivation when it will be closed. Each is zero if its timer is not
	// running.
	Failover, Failback, Deactivation time.Time
	Standby                          bool // connected although it is not needed yet
}

// OutlierDetection is the part of a snapshot that package outlierdetection's policy adds.
type OutlierDetection struct {
	Tier    Condition
	Ejected []Ejected
}

// Ejected is an ejected endpoint.
type Ejected struct {
	Name  string // the endpoint's first address
	By    outlierdetection.Algorithm
	Until time.Time // the first interval that ends after this time ends the ejection
}

// WeightedTarget is the part of a snapshot that package weightedtarget's policy adds.
type WeightedTarget struct {
	// Scheduled returns how many calls the schedule has given to each child since watching began.
	// It may be called at any time and never blocks.
	Scheduled func() []uint64
}

// Target is the part of a ChildSnapshot that package weightedtarget's policy adds.
type Target struct {
	Weight   uint32               // 0 if the child is deactivated
	CountsAs weightedtarget.State // may differ from the reported state
}

// WeightedRoundRobin is the part of a snapshot that package weightedroundrobin's policy adds.
type WeightedRoundRobin struct {
	// Scheduled is like WeightedTarget.Scheduled.
	Scheduled func() []uint64
}

// Endpoint is the part of a ChildSnapshot that package weightedroundrobin's policy adds.
type Endpoint struct {
	Addresses []resolver.Address // the endpoint's addresses; must not be modified
	Weight    uint32             // without slow start
	Record    *Record            // of calls while the policy was watched; still being updated
}
