package outlierdetection

import (
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/lb/tally"
)

var ejectionsEnforced = estats.RegisterInt64Count(estats.MetricDescriptor{
	Name:           "understudy.outlier_detection.ejections_enforced",
	Description:    "Number of endpoints that were ejected, by the algorithm that detected them.",
	Unit:           "{ejection}",
	Labels:         []string{"grpc.target", "understudy.priority", "understudy.outlier_detection.detection_method"},
	OptionalLabels: []string{"grpc.lb.backend_service"},
	Default:        true,
})

// enforcedAt limits the number of metric series of ejectionsEnforced.
var enforcedAt tally.Bound

type rules struct {
	failures codeSet
	row      uint32        // an endpoint is ejected after this number of consecutive failures; 0 disables this
	interval time.Duration // a call without a deadline counts as answered after this time
	proof    bool          // an endpoint must answer a call after its ejection before it counts as usable
}

type codeSet uint32

func setOf(list ...codes.Code) codeSet {
	var set codeSet
	for _, c := range list {
		set |= 1 << c
	}
	return set
}

func (s codeSet) has(c codes.Code) bool { return c < 32 && s&(1<<c) != 0 }

var (
	// certain is the set of codes that always count as failures. They also occur when the server hangs
	// or the connection is lost, and the client then receives no bytes.
	certain = setOf(codes.Unavailable, codes.DeadlineExceeded, codes.DataLoss)
	// defaultFailures is the set of codes that count as failures by default. The last three count only
	// if bytes were received from the server, because the client itself also produces them, for
	// example if a message is too large.
	defaultFailures = certain | setOf(codes.Internal, codes.Unknown, codes.ResourceExhausted)
)

// rulesOf returns the rules by which calls are counted, or nil if the configuration needs no
// counts.
func rulesOf(c *lbconfig.OutlierDetection) *rules {
	if !c.Ejects() {
		return nil
	}
	r := &rules{failures: defaultFailures, interval: time.Duration(c.Interval), proof: c.ReportEmptied}
	if len(c.FailureCodes) > 0 {
		r.failures = 0
	}
	for _, name := range c.FailureCodes {
		code, _ := name.Value()
		r.failures |= setOf(code)
	}
	if consecutive := c.ConsecutiveFailuresEjection; consecutive != nil {
		r.row = consecutive.Failures
	}
	return r
}

type callResult uint8

const (
	inconclusive callResult = iota
	success
	failure
)

func (r *rules) of(info balancer.DoneInfo) callResult {
	if !info.BytesSent {
		return inconclusive // the call has not reached the server
	}
	code := codes.OK
	if info.Err != nil {
		code = status.Code(info.Err)
	}
	switch {
	case r.failures.has(code) && (info.BytesReceived || certain.has(code)):
		return failure
	case !info.BytesReceived:
		return inconclusive // the client itself ended the call
	}
	return success
}
