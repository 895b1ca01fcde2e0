package shell

import (
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/core/weightedtarget"
)

// Priority holds the details that package priority's policy adds to a Snapshot.
type Priority struct {
	// InUse is the name of the child in use, or "".
	InUse string
	Since time.Time // when InUse last changed
	// Unused are the titles of the priorities that have not been needed so far, in order.
	Unused []string
}

// PriorityChild holds the details that package priority's policy adds to a ChildSnapshot.
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

// OutlierDetection holds the details that package outlierdetection's policy adds to a Snapshot.
type OutlierDetection struct {
	Tier    Condition
	Ejected []Ejected
}

// Ejected is an ejected endpoint.
type Ejected struct {
	Name  string // the endpoint's first address
	By    outlierdetection.Algorithm
	Until time.Time // earliest end; the ejection ends with the next interval
}

// WeightedTarget holds the details that package weightedtarget's policy adds to a Snapshot.
type WeightedTarget struct {
	// Scheduled returns how many calls the schedule has given to each child since watching began.
	// It may be called at any time and never blocks.
	Scheduled func() []uint64
}

// Target holds the details that package weightedtarget's policy adds to a ChildSnapshot.
type Target struct {
	Weight   uint32               // 0 if the child is deactivated
	CountsAs weightedtarget.State // may differ from the reported state
}

// WeightedRoundRobin holds the details that package weightedroundrobin's policy adds to a Snapshot.
type WeightedRoundRobin struct {
	// Scheduled has the same meaning as in WeightedTarget.
	Scheduled func() []uint64
}

// Endpoint holds the details that package weightedroundrobin's policy adds to a ChildSnapshot.
type Endpoint struct {
	Addresses []resolver.Address // the endpoint's addresses; must not be modified
	Weight    uint32             // without slow start
	Record    *Record            // calls while the policy was watched; still being updated
}
