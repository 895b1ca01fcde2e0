// Package weightedtarget is the policy understudy_weighted_target: it divides calls
// among its children by their weights (gRFC A28, weighted_target_experimental). In the
// trees of this module the children are the localities of a priority.
//
// Its configuration in JSON:
//
//	{"understudy_weighted_target": {
//	    "targets": {
//	        "us-east/a": {"weight": 3, "childPolicy": [{"round_robin": {}}]},
//	        "us-east/b": {"weight": 1, "childPolicy": [{"round_robin": {}}]}
//	    },
//	    "removedChildRetention": "0s",
//	    "startPoint": "spec"
//	}}
//
//	field                        type              default   range                              from
//	targets                      map of objects    none      weights sum to at most 4294967295  A28
//	targets[name].weight         number            required  1 to 4294967295                    A28
//	targets[name].childPolicy    list of policies  required  at least one                       A28
//	removedChildRetention        duration          "0s"      "0s" and more                      our own
//	startPoint                   string            "spec"    "spec", "random"                   our own
//	balance                      object            none      an own zone and zones              our own
//	balance.own                  string            none      "", one of balance.zones           our own
//	balance.zones                map of objects    none      any                                our own
//	balance.zones[name].callers  number            none      0 and more                         our own
//	targets[name].zone           string            none      one of balance.zones               our own
//	targets[name].capacity       number            none      0 and more                         our own
//
// Without targets, calls fail. removedChildRetention is how long a child is kept after
// an update removes it, in case another brings it back; it gets no calls meanwhile.
// startPoint says where a new child starts in its interval between two picks. With
// "spec" it starts at the beginning, and a client's first calls go to the heaviest
// child. With "random" it starts at a random point, and the first calls of a fleet
// follow the weights.
//
// With balance the weights are not used: the targets share the calls by their zones, own being that of
// the client (docs/near.md). capacity is the weight of the endpoints below a target that can take calls,
// and callers is how many clients a zone has. The shares are made of the capacity that has not failed.
// They are made again where the part of all capacity that a zone has moves by 1/64, becomes 0, or is 0
// no longer. A target of a zone without a share is not made before it has one. When it has none any
// more it is kept for 15 minutes, and for as long as a part of it has failed; it gets calls only while
// no target with a share is READY.
//
// Durations are strings in seconds such as "0.25s", or in Go's forms such as "15m". Of a
// list of policies the first that is registered is used. An unknown field is ignored,
// and logged once with a list of the known ones. An error names its field.
//
// The policy is READY if any child is, else CONNECTING if any child is, else IDLE if
// any is, else TRANSIENT_FAILURE. A child that failed counts as failed until it is
// READY or IDLE. Calls are spread over the READY children in the exact
// earliest-deadline-first sequence of gRFC A34, where the children stand in the order
// of their names; a child keeps its place in the sequence from picker to picker. If no
// child is READY, calls wait while any is CONNECTING; they go to the pickers of IDLE
// children, which thereby are asked to connect; or they fail with the errors of the
// failed ones, chosen by weight. Beside a READY child an IDLE one gets no calls, and so is
// asked to connect, once each time that it becomes IDLE.
//
// Endpoints reach the child that the first element of their path names (package
// hierarchy), with that element taken off.
package weightedtarget

import (
	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/shell"
)

// Name is the name under which the policy is registered.
const Name = "understudy_weighted_target"

func init() { shell.Register(Name, newBuilder) }

// newBuilder returns the policy's builder under the given name.
func newBuilder(name string) balancer.Builder {
	return shell.Spec[lbconfig.WeightedTarget]{Name: "weighted_target", New: newPolicy}.Builder(name)
}
