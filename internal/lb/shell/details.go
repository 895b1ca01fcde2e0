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

type Priority struct {
	InUse string
	Since time.Time
	Inner bool // another priority policy with overflow is above, so this one doesn't refuse any calls
	// Backoff is the longest time between two attempts to connect to an endpoint, including jitter.
	// It's 0 if we don't know.
	Backoff time.Duration
	Unused  []string
}

type PriorityChild struct {
	CountsAs priority.State
	Since    time.Time
	// Priority is the child's index in the list of priorities, or -1 if it's been removed from the
	// list.
	Priority  int
	Endpoints int
	// Why is the reason that the child has failed. While it's recovering, it's the reason for the
	// last failure. It's "" if the child is READY without a problem.
	Why string
	// Failover is when the child will count as failed, and Deactivation is when it'll be closed.
	// They are zero if the timer isn't running.
	Failover, Deactivation time.Time
	Standby                bool
	// Share returns the child's current share, and can be called at any time. It's nil without
	// overflow.
	Share func() Share
}

type Share struct {
	Fraction float64
	Cause    share.Cause
	Lowest   []float64 // lowest value per ten seconds over the last ten minutes, oldest first; nil unless the debug page is enabled
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

type OutlierDetection struct {
	Ejected []Ejected
	Hidden  bool // ejected endpoints still get the calls, since nobody else can take them
}

type Ejected struct {
	Name  string
	By    outlierdetection.Algorithm
	Code  codes.Code // what the last failed call returned
	Until time.Time  // the ejection ends at the first interval after this
}

type WeightedTarget struct {
	// Scheduled returns how many calls each child was assigned since we began to watch the policy.
	// It can be called at any time and doesn't block.
	Scheduled func() []uint64
}

type Target struct {
	Weight   uint32               // 0 if the child isn't configured anymore or has no share
	CountsAs weightedtarget.State // how the policy treats the child; this may differ from what it reported
}

type WeightedRoundRobin struct {
	Scheduled func() []uint64
}

type EndpointPolicy struct{ Name string }

type Endpoint struct {
	Addresses []resolver.Address
	Weight    uint32  // configured weight, i.e. without slow start
	Record    *Record // keeps counting after the snapshot while the policy is watched
}
