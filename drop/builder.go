// Package drop is the policy understudy_drop. It drops a configured share of the calls,
// and passes the others on to its one child. A control plane uses it to shed load
// (drop_overloads of a ClusterLoadAssignment; gRFC A27, gRFC A37).
//
// Its configuration in JSON:
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
// Each call meets the categories in their order, and each drops it by chance,
// independently of the others. Here "lb" drops 5 % of the calls, and "throttle" 10 % of
// the rest. Without categories nothing is dropped, and the child's picker is passed on
// as it is.
//
// Of a list of policies the first that is registered is used. An unknown field is ignored,
// and logged once with a list of the known ones. An error names its field.
//
// Calls are dropped only while the child is READY; otherwise the child's state decides,
// so that a lower priority can step in. A dropped call fails with UNAVAILABLE and a
// message that names the category, even if it waits for ready. The metric
// understudy.drop.dropped counts it. The policy has its child's state, and passes the
// paths of endpoints on unchanged.
package drop

import (
	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/shell"
)

// Name is the name under which the policy is registered.
const Name = "understudy_drop"

func init() { shell.Register(Name, newBuilder) }

// newBuilder returns the policy's builder under the given name.
func newBuilder(name string) balancer.Builder {
	return shell.Spec[lbconfig.Drop]{Name: "drop", New: newPolicy}.Builder(name)
}
