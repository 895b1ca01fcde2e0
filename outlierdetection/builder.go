// Package outlierdetection is the policy understudy_outlier_detection. It takes endpoints
// whose calls fail out of use for a while, and leaves all else to its one child (gRFC A50,
// and A61 for endpoints with several addresses).
//
// Its configuration in JSON is A50's, with three fields more:
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
//	interval                                           duration          "10s"     "1ms" and more           A50
//	baseEjectionTime                                   duration          "30s"     any                      A50
//	maxEjectionTime                                    duration          "300s"    any                      A50
//	maxEjectionPercent                                 number            10        0 to 100                 A50
//	successRateEjection                                object            none      an object                A50
//	successRateEjection.stdevFactor                    number            1900      any, of a thousand       A50
//	successRateEjection.enforcementPercentage          number            100       0 to 100                 A50
//	successRateEjection.minimumHosts                   number            5         any                      A50
//	successRateEjection.requestVolume                  number            100       any                      A50
//	failurePercentageEjection                          object            none      an object                A50
//	failurePercentageEjection.threshold                number            85        0 to 100                 A50
//	failurePercentageEjection.enforcementPercentage    number            100       0 to 100                 A50
//	failurePercentageEjection.minimumHosts             number            5         any                      A50
//	failurePercentageEjection.requestVolume            number            50        any                      A50
//	consecutiveFailuresEjection                        object            none      an object                our own, as Envoy's
//	consecutiveFailuresEjection.failures               number            5         1 and more               our own, as Envoy's
//	consecutiveFailuresEjection.enforcementPercentage  number            100       0 to 100                 our own, as Envoy's
//	failureCodes                                       list of strings   none      names of codes but "OK"  our own
//	reportEmptied                                      bool              false     false, true              our own
//	childPolicy                                        list of policies  required  at least one             A50
//
// Without any of the three ejections the policy does nothing: the child's picker is
// passed on as it is. Without any call for an interval, nothing is known and nothing
// changes.
//
// Failures are UNAVAILABLE, DEADLINE_EXCEEDED and DATA_LOSS, and INTERNAL, UNKNOWN and
// RESOURCE_EXHAUSTED where bytes came from the server, because a client's own faults
// have these codes, too. failureCodes names other codes in their place. The first three
// count without a byte from the server, too: it hangs, or the connection was lost. All
// others count only with bytes from it. Every other answer of the server is a success,
// even NOT_FOUND, and one that the client cancelled after bytes had come. A call says nothing
// if it has sent nothing, or if it ended in any other way without a byte from the server. Each
// attempt of a call that is retried counts. Calls without a deadline never show that a server
// hangs.
//
// consecutiveFailuresEjection ejects an endpoint at once when so many of its calls have
// failed in a row. A success ends a row if its call began after the row's first had failed.
//
// reportEmptied is for tiers of few endpoints, with maxEjectionPercent 100. Once every
// endpoint is ejected, all of them stay in use. Instead the policy says so beside its
// picker, to a parent that knows of other endpoints. An endpoint whose time is over has to
// answer a call before it counts for that; see docs/a50.md.
//
// An ejected endpoint keeps its connection. The child sees it as TRANSIENT_FAILURE by
// gRPC's health listener, so it needs a pick_first of its own for each endpoint, as
// understudy_weighted_round_robin and gRPC's round_robin have. A pick_first over several
// endpoints is refused.
//
// Durations are strings in seconds such as "0.25s", or in Go's forms such as "15m". Of a
// list of policies the first that is registered is taken. A field that is not known is
// ignored, and logged once with a list of those that are; an error names its field.
package outlierdetection

import (
	"math/rand/v2"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/shell"
)

// Name is the name under which the policy is registered.
const Name = "understudy_outlier_detection"

func init() { shell.Register(Name, newBuilder) }

// newBuilder returns the policy's builder under the given name.
func newBuilder(name string) balancer.Builder { return spec(percent).Builder(name) }

// percent returns a random integer in [0, 100).
func percent() uint32 { return rand.Uint32N(100) }

// spec says how the policy is built, with what it draws from.
func spec(random func() uint32) shell.Spec[lbconfig.OutlierDetection] {
	return shell.Spec[lbconfig.OutlierDetection]{
		Name: "outlier_detection",
		New: func(s *shell.Shell) shell.Policy[lbconfig.OutlierDetection] {
			return newPolicy(s, random)
		},
	}
}
