// Package details has what each policy adds to its snapshots: the values of Details in
// Snapshot and ChildSnapshot.
package shell

import (
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/core/weightedtarget"
)

// Priority is what a snapshot says of package priority's policy beyond its children.
type Priority struct {
	// InUse is the name of the child in use, "" for none.
	InUse string
	Since time.Time // when it became so
	// Unused are what people call the priorities, in order, that were not needed yet.
	Unused []string
}

// PriorityChild is what a snapshot says of a child of that policy beyond its state.
type PriorityChild struct {
	CountsAs priority.State
	Since    time.Time // when it began to count as that
	// Priority is its number, -1 for one that is only kept.
	Priority  int
	Endpoints int // that it was given
	// Why says why it is TRANSIENT_FAILURE or was since it was READY, or what is wrong with
	// it where it is READY.
	Why string
	// Failover is when it will be taken for failed unless it connects, Failback when it
	// will take over from the priority in use, and Deactivation when it will be closed;
	// zero where that timer does not run.
	Failover, Failback, Deactivation time.Time
	Standby                          bool // connected although it is not needed yet
}

// OutlierDetection is what a snapshot shows of package outlierdetection's policy.
type OutlierDetection struct {
	Tier    Condition
	Ejected []Ejected
}

// Ejected is an endpoint that is ejected.
type Ejected struct {
	Name  string                     // its first address
	By    outlierdetection.Algorithm // what ejected it
	Until time.Time                  // comes back with the first interval that ends after this
}

// WeightedTarget is what a snapshot says of package weightedtarget's policy.
type WeightedTarget struct {
	// Scheduled returns how many calls each child was given by the schedule since
	// somebody watches. It may be called at any time, and does not wait for the policy.
	Scheduled func() []uint64
}

// Target is what a snapshot says of a child of that policy beyond its state.
type Target struct {
	Weight   uint32               // 0 for one that is only kept
	CountsAs weightedtarget.State // which is not always what the child reported
}

// WeightedRoundRobin is what a snapshot says of package weightedroundrobin's policy.
type WeightedRoundRobin struct {
	// Scheduled is like that of WeightedTarget.
	Scheduled func() []uint64
}

// Endpoint is what a snapshot says of a child of that policy beyond its state.
type Endpoint struct {
	Addresses []resolver.Address // that it stands for; must not be modified
	Weight    uint32             // without slow start
	Record    *Record            // of the calls while somebody watched; it goes on counting
}
