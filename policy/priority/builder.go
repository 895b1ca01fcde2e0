// Package priority implements the policy understudy_priority. Its children are in priority order,
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
// priorities are the names of children, the highest priority first. A child that is not in
// priorities is not created, but an existing one is kept and updated. Without priorities, calls
// fail with an error. ignoreReresolutionRequests drops the child's requests for re-resolution.
// failoverTimeout is how long a child may try to connect before the next priority is used.
// childRetention is how long a child is kept while a higher one is in use. removedChildRetention is
// how long a child that is no longer configured is kept. warmStandby is how many priorities below
// the one in use are connected before they are needed.
//
// With overflow, a child takes the share of the calls that it can carry, and the next READY one gets
// the others; see internal/core/share. Calls then do not wait for a child that reconnects while a
// lower one is READY, and standbys are connected from the start. ramp is the time in which the share
// of a child that recovers doubles up to 1; "0s" means 8 s. perPriority is set if calls choose their
// endpoints below the children, as with ring_hash: a full endpoint then cuts the share of its child,
// and is not ejected for it.
//
// sourcePriorities lists, for each entry of priorities, the number of its priority at the source.
// Entries with the same number are groups of the same priority at different distances from the
// client: warmStandby counts numbers.
//
// Without children, the policy takes the configuration that a resolver of this module has put into the
// attributes of its state, if there is one (docs/adr/0061-a-tree-is-a-value.md).
//
// Durations are strings in seconds such as "0.25s", or in Go's format such as "15m". The first
// registered policy of a list is used. Unknown fields are ignored, and logged once with a list of
// the known ones. Errors name the invalid field.
//
// The decisions are made in internal/core/priority. This package implements gRPC's balancer API and
// runs the timers.
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
