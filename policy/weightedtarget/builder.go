// Package weightedtarget implements the understudy_weighted_target policy, which divides calls
// among its children by their weights (gRFC A28, weighted_target_experimental). In the policy
// trees of this module, the children are the localities of a priority.
//
// Its JSON configuration:
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
//	removedChildRetention        duration          "0s"      at least "0s"                      ours
//	startPoint                   string            "spec"    "spec", "random"                   ours
//
// Without targets, calls fail. removedChildRetention is how long a removed child is kept
// without calls, in case a later update adds it again. startPoint sets the point at which a new
// child starts in its interval between two picks. With "spec", it starts at the beginning, so
// that the first calls of every client go to the child with the largest weight. With "random",
// it starts at a random point, so that the first calls of a fleet of clients follow the
// weights.
//
// Durations are strings such as "0.25s" or "15m". The first registered policy in childPolicy is
// used. Unknown fields are ignored and logged once.
//
// The policy is READY if any child is, else CONNECTING if any is, else IDLE if any is, else
// TRANSIENT_FAILURE. A child that has failed counts as failed until it is READY or IDLE. Calls
// are divided among the READY children in the exact earliest-deadline-first order of gRFC A34,
// with the children ordered by name. A child keeps its position in the sequence when a new
// picker replaces the old one.
//
// If no child is READY, calls wait while any child is CONNECTING. Otherwise, they go to the
// pickers of the IDLE children, which makes these connect. If all children have failed, calls
// fail with the error of a child that is chosen by weight. An IDLE child next to a READY or
// CONNECTING one receives no calls. The policy therefore makes it connect, once each time it
// becomes IDLE.
//
// An endpoint belongs to the child named by the first element of its path (package hierarchy).
// The child receives it without this element.
package weightedtarget

import (
	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/lb/shell"
)

// Name is the name of the policy.
const Name = "understudy_weighted_target"

func init() { shell.Register(Name, newBuilder) }

func newBuilder(name string) balancer.Builder {
	return shell.Spec[lbconfig.WeightedTarget]{Name: "weighted_target", New: newPolicy}.Builder(name)
}
