// Package outlierdetection implements the understudy_outlier_detection policy, which temporarily
// ejects endpoints whose calls fail. Its only child policy balances calls over the remaining
// endpoints. It follows gRFC A50, and A61 for endpoints with several addresses.
//
// The JSON configuration is that of A50 plus two fields:
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
// If none of the three ejection algorithms is configured, the policy passes on the child's picker
// unchanged. An interval without calls never ejects anything.
//
// The status codes UNAVAILABLE, DEADLINE_EXCEEDED and DATA_LOSS always count as failures, since
// that's what calls get if a server hangs or the connection is lost. INTERNAL, UNKNOWN and
// RESOURCE_EXHAUSTED can also come from the client itself, so they only count if we received any
// bytes from the server. You can replace this list with failureCodes. Any codes in there other than
// UNAVAILABLE, DEADLINE_EXCEEDED and DATA_LOSS only count if bytes were received, too. If the
// server sends some other status, even NOT_FOUND, that's a success. So is a call that the client
// cancels after receiving bytes. Calls that sent nothing don't count, and neither do calls that end
// in any other way before bytes were received. If a call is retried, each attempt counts. Note that
// calls without a deadline can't show that a server hangs.
//
// consecutiveFailuresEjection ejects an endpoint as soon as that many of its calls have failed in a
// row. A success only resets the count if its call began after the first of these failures. All
// calls that are lost with one connection before their first bytes count as one failure.
//
// Two things differ below a priority policy with overflow, which can send calls to other priorities.
// If every endpoint is ejected, they all stay in use. And when an endpoint's ejection time is over,
// a single failure ejects it again, until it has answered a call; see docs/a50.md.
//
// An ejected endpoint keeps its connection. gRPC's health listener tells the child that it's in
// TRANSIENT_FAILURE. For this to work, the child must have a pick_first for each endpoint, as
// understudy_weighted_round_robin and gRPC's round_robin do. Configuring one pick_first over
// several endpoints is an error.
//
// Durations are strings such as "0.25s" or "15m". childPolicy is a list, from which we use the
// first policy that's registered. Unknown fields are ignored and logged once.
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
