// Package priority implements the policy understudy_priority. Its children are ordered by priority,
// and calls go to the highest one that is READY (gRFC A56). Importing the package registers the
// policy.
//
// Its configuration in JSON:
//
//	{"understudy_priority": {
//	    "children": {
//	        "near": {"config": [{"round_robin": {}}], "ignoreReresolutionRequests": false},
//	        "far":  {"config": [{"round_robin": {}}]}
//	    },
//	    "priorities": ["near", "far"],
//	    "sourcePriorities": [0, 0],
//	    "failoverTimeout": "10s",
//	    "childRetention": "15m",
//	    "removedChildRetention": "15m",
//	    "warmStandby": 1,
//	    "overflow": false,
//	    "ramp": "8s",
//	    "perPriority": false
//	}}
//
//	field                                      type              default   range                         from
//	children                                   map of objects    none      no empty name                 A56
//	children[name].config                      list of policies  required  at least one                  A56
//	children[name].ignoreReresolutionRequests  bool              false     false, true                   A56
//	priorities                                 list of strings   none      names of children, each once  A56
//	sourcePriorities                           list of numbers   none      one per priority, ascending    our own
//	failoverTimeout                            duration          "10s"     more than "0s"                A56; a field of our own
//	childRetention                             duration          "15m"     "0s" and more                 A56; a field of our own
//	removedChildRetention                      duration          "15m"     "0s" and more                 A56; a field of our own
//	warmStandby                                number            0         0 to 128                      our own
//	overflow                                   bool              false     false, true                   our own
//	ramp                                       duration          "0s"      "0s", or "1s" to "1h"         our own
//	perPriority                                bool              false     false, true                   our own
//
// priorities lists children by name, highest priority first. A child that isn't listed there isn't
// created, but if it exists already, it's kept and updated. Without any priorities, calls fail with
// an error. If ignoreReresolutionRequests is set, the child's requests for re-resolution are
// dropped. failoverTimeout is how long a child may try to connect before the next priority is used.
// childRetention is how long a child is kept while a higher one is in use, and
// removedChildRetention how long it's kept once it isn't configured anymore. warmStandby is how
// many priorities below the one in use are connected before they're needed.
//
// With overflow, a child takes as large a share of the calls as it can carry, and the next READY
// one gets the rest; see internal/core/share. Calls don't wait for a child that is reconnecting if
// a lower one is READY, and standbys are connected from the start. When a child recovers, its share
// keeps doubling until it gets to 1 after the time in ramp; "0s" means 8 s. Set perPriority if
// calls choose their endpoint below the children, as with ring_hash. If an endpoint is full, that
// reduces the share of its child, and the endpoint isn't ejected for it.
//
// sourcePriorities maps each entry of priorities to the number of a priority at the source. If
// entries have the same number, they're groups of one priority at different distances from the
// client, and warmStandby counts them once.
//
// Without children, the policy uses the configuration that a resolver of this module has put into
// the attributes of its state, if any (docs/adr/0061-a-tree-is-a-value.md).
//
// Durations are strings, either in seconds such as "0.25s" or in Go's format such as "15m". If a
// field is a list of policies, the first one that's registered is used. Unknown fields are ignored.
// We log them once, along with a list of the known ones. If a field is invalid, the error names it.
//
// All decisions are made in internal/core/priority. This package implements gRPC's balancer API on
// top of it and runs the timers.
package priority

import (
	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/lb/shell"
)

// Name is the policy's name in service configs.
const Name = "understudy_priority"

func init() { shell.Register(Name, newBuilder) }

func newBuilder(name string) balancer.Builder {
	return shell.Spec[lbconfig.Priority]{Name: "priority", New: newPolicy}.Builder(name)
}
