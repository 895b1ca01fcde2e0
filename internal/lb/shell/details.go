package shell

import (
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/core/weightedtarget"
)

// Priority is what package priority stores in Snapshot.Details.
type Priority struct {
	InUse string
	Since time.Time
	// Unused are the titles of the priorities that have not been needed yet, in order.
	Unused []string
}

// PriorityChild is what package priority stores in ChildSnapshot.Details.
type PriorityChild struct {
	CountsAs priority.State
	Since    time.Time
	// Priority is the child's index in the list of priorities, or -1 if it is no longer in the list.
	Priority  int
	Endpoints int
	// Why is the reason for the child's failure, or for its last failure if the child is recovering.
	// It is "" if the child is READY and has no problem.
	Why string
	// Failover is the time at which the child will count as failed, Failback the time at which it will
	// take over from the priority in use, and Deactivation the time at which it will be closed. If one
	// of the timers is not running, its time is zero.
	Failover, Failback, Deactivation time.Time
	Standby                          bool // connected before it is needed, in case a higher priority fails
}

// OutlierDetection is what package outlierdetection stores in Snapshot.Details.
type OutlierDetection struct {
	Tier    Condition
	Ejected []Ejected
}

// Ejected is an ejected endpoint.
type Ejected struct {
	Name  string
	By    outlierdetection.Algorithm
	Until time.Time // the ejection ends at the first interval after this time
}

// WeightedTarget is what package weightedtarget stores in Snapshot.Details.
type WeightedTarget struct {
	// Scheduled returns the number of calls that were assigned to each child since watching of the
	// policy began. It may be called at any time and does not block.
	Scheduled func() []uint64
}

// Target is what package weightedtarget stores in ChildSnapshot.Details.
type Target struct {
	Weight   uint32               // 0 if the child is no longer configured or has no share
	CountsAs weightedtarget.State // the state that the policy assumes for the child, which may differ from the reported state
}

// WeightedRoundRobin is what package weightedroundrobin stores in Snapshot.Details.
type WeightedRoundRobin struct {
	Scheduled func() []uint64
}

// Endpoint is what package weightedroundrobin stores in ChildSnapshot.Details.
type Endpoint struct {
	Addresses []resolver.Address // must not be modified
	Weight    uint32             // configured weight, without slow start
	Record    *Record            // counts the calls while the policy is watched; it changes after the snapshot, too
}
