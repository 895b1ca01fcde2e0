// Package priority is the policy understudy_priority. Its children are in priority
// order, and calls go to the highest one that is READY (gRFC A56). Importing the
// package registers the policy.
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
//	    "failbackDelay": "0s",
//	    "minReady": 0.6,
//	    "minReadyRecovery": 0.8,
//	    "warmStandby": 1,
//	    "fastFailover": true,
//	    "failbackJitter": "20s",
//	    "maxFailbackDelay": "30s"
//	}}
//
//	field                                      type              default   range                         from
//	children                                   map of objects    none      no empty name                 A56
//	children[name].config                      list of policies  required  at least one                  A56
//	children[name].ignoreReresolutionRequests  bool              false     false, true                   A56
//	priorities                                 list of strings   none      names of children, each once  A56
//	sourcePriorities                           list of numbers   none      one a priority, not falling    our own
//	failoverTimeout                            duration          "10s"     more than "0s"                A56; a field of our own
//	childRetention                             duration          "15m"     "0s" and more                 A56; a field of our own
//	removedChildRetention                      duration          "15m"     "0s" and more                 A56; a field of our own
//	failbackDelay                              duration          "0s"      "0s" to "24h"                 our own
//	minReady                                   number            0         0 to 1                        our own
//	minReadyRecovery                           number            0         0, or minReady to 1           our own
//	warmStandby                                number            0         0 to 128                      our own
//	fastFailover                               bool              false     false, true                   our own
//	failbackJitter                             duration          "0s"      "0s" to "24h"                 our own
//	maxFailbackDelay                           duration          "0s"      "0s", or failbackDelay to "24h"  our own
//
// priorities has the names of children, the highest first. A child that it leaves out is
// not created; one that exists already is updated and kept. Without priorities, calls
// fail with an error that says so. ignoreReresolutionRequests keeps what the child asks
// for from the resolver. failoverTimeout is how long a child may try to connect before
// the next priority has its turn; childRetention is how long a child is kept once a
// higher one is in use; removedChildRetention is how long one is kept that is not
// configured any more; failbackDelay is how long a child must have been READY before it
// takes over from a lower one that is READY.
//
// warmStandby is how many of the priorities below the one in use are connected before they
// are needed; fastFailover says that a child that has lost its connections, of which it
// can hold two at least, is not waited for while a lower one is READY. failbackJitter is a
// window, of which a random part is added to each failback delay. maxFailbackDelay is what
// the delay of a child that keeps failing again grows to, doubling each time; "0s" lets it
// stay as it is.
//
// sourcePriorities says for each of priorities to which priority of its source it belongs.
// Those of one number are near groups of it: warmStandby counts numbers, and where the first
// of a number is not READY for a second, the others are started, so that they do not wait
// for each other's failoverTimeout in a row.
//
// Durations are strings in seconds such as "0.25s", or in Go's forms such as "15m". Of a
// list of policies the first that is registered is taken. A field that is not known is
// ignored, and logged once with a list of those that are; an error names its field.
//
// The decisions are in internal/core/priority; this package speaks gRPC's balancer API
// and keeps the timers.
package priority

import (
	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/shell"
)

// Name is the name that the policy is registered under when this package is
// imported.
const Name = "understudy_priority"

func init() { shell.Register(Name, newBuilder) }

// newBuilder returns the policy's builder under the given name.
func newBuilder(name string) balancer.Builder {
	return shell.Spec[lbconfig.Priority]{Name: "priority", New: newPolicy}.Builder(name)
}
