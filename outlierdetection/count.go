package outlierdetection

import (
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/tally"
)

// ejectionsEnforced counts the ejections.
var ejectionsEnforced = estats.RegisterInt64Count(estats.MetricDescriptor{
	Name:           "understudy.outlier_detection.ejections_enforced",
	Description:    "Number of endpoints that were ejected, by the algorithm that found them.",
	Unit:           "{ejection}",
	Labels:         []string{"grpc.target", "understudy.priority", "understudy.outlier_detection.detection_method"},
	OptionalLabels: []string{"grpc.lb.backend_service"},
	Default:        true,
})

// enforcedAt bounds the places in the tree that are counted.
var enforcedAt tally.Bound

// rules say what a call that ends says about its endpoint.
type rules struct {
	failures codeSet
	row      uint32        // failures in a row that eject; 0 for none
	interval time.Duration // a call without a deadline that takes so long is answered
	proof    bool          // endpoints have to prove themselves
}

// codeSet is a set of status codes, which are few.
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
	// certain are the codes that say something about the endpoint even if no byte came
	// from it: it hangs, or the connection was lost.
	certain = setOf(codes.Unavailable, codes.DeadlineExceeded, codes.DataLoss)
	// defaultFailures are the codes that count as failures. The other three are also
	// those of a client's own faults: a limit on what it sends or reads, and messages
	// that do not marshal.
	defaultFailures = certain | setOf(codes.Internal, codes.Unknown, codes.ResourceExhausted)
)

// rulesOf returns the rules of a configuration, nil where nothing is to be counted.
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

// verdict says what a call tells about its endpoint.
type verdict uint8

const (
	nothing verdict = iota
	success
	failure
)

// of returns the verdict of a call that has ended with info.
func (r *rules) of(info balancer.DoneInfo) verdict {
	if !info.BytesSent {
		return nothing // it never left the client, or its connection was just lost
	}
	code := codes.OK
	if info.Err != nil {
		code = status.Code(info.Err)
	}
	switch {
	case r.failures.has(code) && (info.BytesReceived || certain.has(code)):
		return failure
	case !info.BytesReceived:
		return nothing // the client's own fault, or its change of mind
	}
	return success
}
