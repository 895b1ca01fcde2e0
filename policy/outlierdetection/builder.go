// Package outlierdetection implements the understudy_outlier_detection policy, which
// temporarily ejects endpoints whose calls fail. It has one child policy, which balances calls
// over the remaining endpoints. The policy follows gRFC A50, and A61 for endpoints with several
// addresses.
//
// Its JSON configuration is that of A50 with two additional fields:
//
//	{"understudy_outlier_detection": {
//	    "interval": "10s",
//	    "maxEjectionPercent": 50,
//	    "failurePercentageEjection": {"minimumHosts": 2, "requestVolume": 20},
//	    "consecutiveFailuresEjection": {},
//	    "childPolicy": [{"understudy_weighted_round_robin": {}}]
//	}}
//
//	field                                              type              default   range                    from
//	interval                                           duration          "10s"     at least "1ms"           A50
//	baseEjectionTime                                   duration          "30s"     any                      A50
//	maxEjectionTime                                    duration          "300s"    any                      A50
//	maxEjectionPercent                                 number            10        0 to 100                 A50
//	successRateEjection                                object            none      an object                A50
//	successRateEjection.stdevFactor                    number            1900      any, in thousandths      A50
//	successRateEjection.enforcementPercentage          number            100       0 to 100                 A50
//	successRateEjection.minimumHosts                   number            5         any                      A50
//	successRateEjection.requestVolume                  number            100       any                      A50
//	failurePercentageEjection                          object            none      an object                A50
//	failurePercentageEjection.threshold                number            85        0 to 100                 A50
//	failurePercentageEjection.enforcementPercentage    number            100       0 to 100                 A50
//	failurePercentageEjection.minimumHosts             number            5         any                      A50
//	failurePercentageEjection.requestVolume            number            50        any                      A50
//	consecutiveFailuresEjection                        object            none      an object                ours, as in Envoy
//	consecutiveFailuresEjection.failures               number            5         at least 1               ours, as in Envoy
//	consecutiveFailuresEjection.enforcementPercentage  number            100       0 to 100                 ours, as in Envoy
//	failureCodes                                       list of strings   none      code names except "OK"   ours
//	childPolicy                                        list of policies  required  at least one             A50
//
// If none of the three ejection algorithms is configured, the policy passes on the child's
// picker unchanged. An interval without calls ejects nothing.
//
// The status codes UNAVAILABLE, DEADLINE_EXCEEDED and DATA_LOSS always count as failures,
// because they also occur when the server hangs or the connection is lost. INTERNAL, UNKNOWN
// and RESOURCE_EXHAUSTED count as failures only if bytes were received from the server, because
// the client itself also produces these codes. failureCodes replaces this list; a code in
// failureCodes other than UNAVAILABLE, DEADLINE_EXCEEDED and DATA_LOSS counts only if bytes were
// received. Any other status that the server sends is a success, even NOT_FOUND, and so is a
// call that the client cancels after it has received bytes. A call does not count if it sent
// nothing, or if it ended in any other way before bytes were received. Each attempt of a retried
// call counts. A call without a deadline cannot show that a server hangs.
//
// consecutiveFailuresEjection ejects an endpoint as soon as the given number of its calls have
// failed in a row. A success resets the count only if its call began after the first of these
// failures.
//
// Below a priority policy with overflow, all endpoints stay in use when every one is ejected,
// because that policy sends calls to other priorities. An endpoint whose ejection time is over is
// ejected again at its next failure until it has answered a call; see docs/a50.md.
//
// An ejected endpoint keeps its connection. The child sees it in TRANSIENT_FAILURE through
// gRPC's health listener. The child must therefore have a pick_first for each endpoint, as
// understudy_weighted_round_robin and gRPC's round_robin do. A configuration with one
// pick_first over several endpoints is an error.
//
// Durations are strings such as "0.25s" or "15m". The first registered policy in childPolicy is
// used. Unknown fields are ignored and logged once.
package outlierdetection

import (
	"math/rand/v2"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/lb/shell"
)

// Name is the name of the policy.
const Name = "understudy_outlier_detection"

func init() { shell.Register(Name, newBuilder) }

func newBuilder(name string) balancer.Builder { return spec(percent).Builder(name) }

func percent() uint32 { return rand.Uint32N(100) }

func spec(random func() uint32) shell.Spec[lbconfig.OutlierDetection] {
	return shell.Spec[lbconfig.OutlierDetection]{
		Name: "outlier_detection",
		New: func(s *shell.Shell) shell.Policy[lbconfig.OutlierDetection] {
			return newPolicy(s, random)
		},
	}
}
