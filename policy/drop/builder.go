// Package drop implements the understudy_drop policy. It drops a configured share of the calls and
// passes the rest on to its child. A control plane can use it to shed load (drop_overloads of a
// ClusterLoadAssignment; gRFC A27, gRFC A37).
//
// Its JSON configuration:
//
//	{"understudy_drop": {
//	    "dropCategories": [
//	        {"category": "lb", "requestsPerMillion": 50000},
//	        {"category": "throttle", "requestsPerMillion": 100000}
//	    ],
//	    "childPolicy": [{"round_robin": {}}]
//	}}
//
//	field                                 type              default   range         from
//	dropCategories                        list of objects   none      any number    A37
//	dropCategories[i].category            string            ""        any           A37
//	dropCategories[i].requestsPerMillion  number            0         0 to 1000000  A37
//	childPolicy                           list of policies  required  at least one  A37
//
// Each category in turn drops a call with its own probability. In the example, "lb" drops 5 % of
// the calls, and "throttle" drops 10 % of what's left. If there are no categories, nothing is
// dropped, and the policy passes on the child's picker unchanged.
//
// childPolicy is a list, from which we use the first policy that's registered. Unknown fields are
// ignored and logged once.
//
// The policy reports its child's connectivity state, and passes on the endpoints' paths unchanged.
// It only drops calls while the child is READY, so that otherwise a lower priority can take over. A
// dropped call fails with UNAVAILABLE and a message that names the category, even if the call waits
// for ready. The metric understudy.drop.dropped counts dropped calls.
package drop

import (
	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/lb/shell"
)

// Name is the name of the policy.
const Name = "understudy_drop"

func init() { shell.Register(Name, newBuilder) }

func newBuilder(name string) balancer.Builder {
	return shell.Spec[lbconfig.Drop]{Name: "drop", New: newPolicy}.Builder(name)
}
