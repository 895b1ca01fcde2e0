// Package drop implements the understudy_drop policy, which drops a configured share of the
// calls and passes the others to its child. A control plane uses it to shed load
// (drop_overloads of a ClusterLoadAssignment; gRFC A27, gRFC A37).
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
// Each category, in order, drops a call with its own probability. In the example, "lb" drops 5
// % of the calls, and "throttle" drops 10 % of the remaining calls. Without categories, the
// policy drops nothing and passes on the child's picker unchanged.
//
// The first registered policy in childPolicy is used. Unknown fields are ignored and logged
// once.
//
// The policy reports its child's connectivity state and passes on the paths of endpoints unchanged.
// It drops calls only while the child is READY, so that a lower priority can take over
// otherwise. A dropped call fails with UNAVAILABLE and a message that names the category, even
// if the call waits for ready. The metric understudy.drop.dropped counts dropped calls.
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
