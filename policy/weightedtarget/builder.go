// Package weightedtarget implements the understudy_weighted_target policy, which divides calls
// among its children by weight (gRFC A28, weighted_target_experimental). In the policy trees of
// this module, the children are the localities of a priority.
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
// Without targets, calls fail. When a child is removed, we keep it without calls for
// removedChildRetention, in case a later update adds it again. startPoint says where a new child
// starts in the interval between two of its picks. With "spec", that's the beginning, which means
// that the first calls of every client go to the child with the largest weight. With "random", it's
// a random point, and the first calls of a fleet of clients follow the weights.
//
// Durations are strings such as "0.25s" or "15m". childPolicy is a list, from which we use the
// first policy that's registered. Unknown fields are ignored and logged once.
//
// The policy is READY if any child is, otherwise CONNECTING if any is, otherwise IDLE if any is,
// and otherwise TRANSIENT_FAILURE. Once a child has failed, it counts as failed until it's READY or
// IDLE. Calls are divided among the READY children in the exact earliest-deadline-first order of
// gRFC A34, with the children ordered by name. When a new picker replaces the old one, children
// keep their position in the sequence.
//
// What happens if no child is READY? As long as any child is CONNECTING, calls wait. Otherwise they
// go to the pickers of the IDLE children, which makes those connect. If all children have failed,
// calls fail with the error of a child that's chosen by weight. An IDLE child doesn't get any calls
// while another one is READY or CONNECTING, so we tell it to connect, once each time it becomes
// IDLE.
//
// An endpoint belongs to the child named by the first element of its path (package hierarchy). The
// child gets the endpoint without that element.
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
