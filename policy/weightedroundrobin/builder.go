// Package weightedroundrobin implements the understudy_weighted_round_robin policy (gRFC A34).
// Each endpoint receives calls in proportion to its weight, in exact earliest-deadline-first
// order.
//
// An endpoint's weight is the attribute that grpc-go's experimental/balancer/weight package
// sets. An endpoint without this attribute, or with weight 0, has weight 1. Each endpoint has
// its own pick_first child, and only READY children are picked. As in round_robin, the policy
// is READY if any child is, else CONNECTING if any is, else IDLE if any is, else
// TRANSIENT_FAILURE.
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
// A34 defines no configuration fields. startPoint sets the point at which a new endpoint starts
// in its interval between two picks. With "spec", it starts at the beginning, as in A34, so
// that the first calls of every client go to the endpoints with the largest weights. With
// "random", it starts at a random point, so that the first calls of a fleet of clients follow
// the weights. With "random", a client also starts connecting at a random endpoint instead of
// the first.
//
// slowStart gradually increases the share of an endpoint that has just become READY until the
// window is over, like Envoy's slow_start:
//
//	weight × max(minWeightPercent/100, (max(seconds since READY, 1)/window)^(1/aggression))
//
// It has an effect only if other endpoints are past their window.
//
// Durations are strings such as "0.25s" or "15m". Unknown fields are ignored and logged once.
//
// The cost of a picker is proportional to the number of READY endpoints. If more than 256 are
// READY, further connectivity changes are therefore batched for up to 1 µs per READY endpoint
// (10 ms for 10,000). The first READY endpoint, a change of the policy's state and an update
// from the resolver always take effect immediately.
//
// Endpoints keep their position in the sequence when a new picker replaces the old one, whether
// weights, READY endpoints, the list of endpoints or its order have changed. Frequent updates
// therefore do not favor endpoints with large weights, although the deadlines of A34 start
// again with each picker.
package weightedroundrobin

import (
	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/lb/shell"
)

// Name is the name of the policy.
const Name = "understudy_weighted_round_robin"

func init() { shell.Register(Name, newBuilder) }

func newBuilder(name string) balancer.Builder { return spec(defaultLeaf).Builder(name) }
