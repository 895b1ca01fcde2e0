package outlierdetection

import (
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	estats "google.golang.org/grpc/experimental/stats"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/lb/shell"
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

var enforcedAt tally.Bound

type rules struct {
	failures codeSet
	row      uint32 // number of consecutive failures that eject an endpoint; 0 turns this off
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

// defaultFailures are the codes that count as failures by default. The last three only count if
// bytes were received from the server (see shell.Ended).
var defaultFailures = setOf(codes.Unavailable, codes.DeadlineExceeded, codes.DataLoss, codes.Internal, codes.Unknown, codes.ResourceExhausted)

// rulesOf returns nil if the configuration doesn't need counts.
func rulesOf(c *lbconfig.OutlierDetection) *rules {
	if !c.Ejects() {
		return nil
	}
	r := &rules{failures: defaultFailures}
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

func (r *rules) of(info *balancer.DoneInfo) callResult {
	code, conclusive := shell.Ended(info)
	switch {
	case !conclusive:
		return inconclusive
	case r.failures.has(code):
		return failure
	case !info.BytesReceived:
		return inconclusive // not a failure by these rules, but no answer either
	}
	return success
}
