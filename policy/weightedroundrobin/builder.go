// Package weightedroundrobin implements the understudy_weighted_round_robin policy (gRFC A34).
// Endpoints get calls in proportion to their weights, in exact earliest-deadline-first order.
//
// An endpoint's weight is the attribute that grpc-go's experimental/balancer/weight package sets.
// If it's missing or 0, the weight is 1. Each endpoint has its own pick_first child, and we only
// pick children that are READY. As in round_robin, the policy is READY if any child is, otherwise
// CONNECTING if any is, otherwise IDLE if any is, and otherwise TRANSIENT_FAILURE.
//
// Its JSON configuration:
//
//	{"understudy_weighted_round_robin": {
//	    "startPoint": "random",
//	    "slowStart": {"window": "30s", "aggression": 1.0, "minWeightPercent": 10}
//	}}
//
//	field                       type      default   range             from
//	startPoint                  string    "spec"    "spec", "random"  ours
//	slowStart                   object    none      an object         ours, as Envoy's slow_start
//	slowStart.window            duration  required  more than "0s"    ours
//	slowStart.aggression        number    1.0       more than 0       ours
//	slowStart.minWeightPercent  number    10        0 to 100          ours
//
// A34 doesn't define any configuration fields. startPoint says where a new endpoint starts in the
// interval between two of its picks. With "spec", that's the beginning, as in A34, which means that
// the first calls of every client go to the endpoints with the largest weights. With "random", it's
// a random point. The first calls of a fleet of clients then follow the weights. Also, each client
// begins to connect at a random endpoint rather than the first.
//
// slowStart is like Envoy's slow_start. When an endpoint has become READY, its share increases
// gradually until the window is over:
//
//	weight × max(minWeightPercent/100, (max(seconds since READY, 1)/window)^(1/aggression))
//
// It only makes a difference if there are endpoints whose window is already over.
//
// Durations are strings such as "0.25s" or "15m". Unknown fields are ignored and logged once.
//
// Building a picker costs time in proportion to the number of READY endpoints. If more than 256 are
// READY, we batch further connectivity changes for up to 1 µs per READY endpoint, e.g. 10 ms for
// 10,000. Some things always take effect at once: the first READY endpoint, a change of the
// policy's state, and an update from the resolver.
//
// When a new picker replaces the old one, endpoints keep their position in the sequence, whether
// it's the weights, the list, its order or the READY endpoints that have changed. In A34, deadlines
// start over with each picker, so frequent updates favor endpoints with large weights. That doesn't
// happen here.
package weightedroundrobin

import (
	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/lb/shell"
)

// Name is the name of the policy.
const Name = "understudy_weighted_round_robin"

func init() { shell.Register(Name, newBuilder) }

func newBuilder(name string) balancer.Builder { return spec(defaultLeaf).Builder(name) }
