package shell

import (
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/core/share"
	"github.com/understudy-lb/understudy/internal/core/weightedtarget"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Priority is what package priority stores in Snapshot.Details.
type Priority struct {
	InUse string
	Since time.Time
	Inner bool // another priority policy with overflow is above, so this one refuses no calls
	// Backoff is the longest time between two attempts to connect to an endpoint, with jitter, or 0 if
	// it is unknown.
	Backoff time.Duration
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
	// Why says why the child has failed, or why it did last if it is recovering. It is "" if the
	// child is READY and has no problem.
	Why string
	// Failover is the time at which the child will count as failed, and Deactivation the time at which
	// it will be closed. If one of the timers is not running, its time is zero.
	Failover, Deactivation time.Time
	Standby                bool // connected before it is needed, in case a higher priority fails
	// Share returns the child's current share. It may be called at any time. It is nil without
	// overflow.
	Share func() Share
}

// Share is how much of the calls that are offered to a priority it takes.
type Share struct {
	Fraction float64
	Cause    share.Cause // why it fell the last time
	Lowest   []float64   // in each ten seconds of the last ten minutes, the oldest first; nil unless the debug page is enabled
}

func (s Share) String() string {
	switch s.Fraction {
	case 0:
		return fmt.Sprintf("takes only probes: %v", s.Cause)
	case 1:
		return "takes all of its calls"
	}
	return fmt.Sprintf("takes %s %% of its calls: %v", printable.Percent(s.Fraction), s.Cause)
}

// OutlierDetection is what package outlierdetection stores in Snapshot.Details.
type OutlierDetection struct {
	Ejected []Ejected
	Hidden  bool // no other endpoint can take calls, so the ejected ones get them
}

// Ejected is an ejected endpoint.
type Ejected struct {
	Name  string
	By    outlierdetection.Algorithm
	Code  codes.Code // of its last failed call
	Until time.Time  // the ejection ends at the first interval after this time
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

// EndpointPolicy is what package leaf stores in Snapshot.Details.
type EndpointPolicy struct{ Name string }

// Endpoint is what packages leaf and weightedroundrobin store in ChildSnapshot.Details.
type Endpoint struct {
	Addresses []resolver.Address // must not be modified
	Weight    uint32             // configured weight, without slow start
	Record    *Record            // counts the calls while the policy is watched; it changes after the snapshot, too
}
