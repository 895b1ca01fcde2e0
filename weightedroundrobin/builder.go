// Package weightedroundrobin provides the load-balancing policy
// "understudy_weighted_round_robin" (gRFC A34): each endpoint gets a share of the
// calls in proportion to its weight, in the exact order of earliest deadline
// first.
//
// An endpoint's weight is the attribute of grpc-go's experimental/balancer/weight;
// an endpoint without one, or with weight 0, has weight 1. There is one child
// policy, pick_first, for each endpoint. Only children that are READY are picked;
// the state of the policy is READY if any child is, else CONNECTING if any is,
// else IDLE if any is, else TRANSIENT_FAILURE, as in round_robin.
//
// Its configuration in JSON:
//
//	{"understudy_weighted_round_robin": {
//	    "startPoint": "random",
//	    "slowStart": {"window": "30s", "aggression": 1.0, "minWeightPercent": 10}
//	}}
//
//	field                       type      default   range             from
//	startPoint                  string    "spec"    "spec", "random"  our own
//	slowStart                   object    none      an object         our own, as Envoy's slow_start
//	slowStart.window            duration  required  more than "0s"    our own
//	slowStart.aggression        number    1.0       more than 0       our own
//	slowStart.minWeightPercent  number    10        0 to 100          our own
//
// A34's own configuration has no fields. startPoint says where a new endpoint starts in
// its interval between two picks. With "spec" it starts at the beginning, as in A34,
// and a client's first calls all go to the heaviest endpoints. With "random" it starts
// at a random point: a client's sequence begins at a random pick, so the first calls of
// a fleet of clients follow the weights. With "random", connections also start at a
// random endpoint of the list instead of the first.
//
// slowStart gives an endpoint that has just become READY a share that grows over the
// window until it is the one of its weight, as Envoy's slow_start does:
//
//	weight × max(minWeightPercent/100, (max(seconds since READY, 1)/window)^(1/aggression))
//
// It has an effect only beside endpoints that are past their window.
//
// Durations are strings in seconds such as "0.25s", or in Go's forms such as "15m". An
// unknown field is ignored, and logged once with a list of the known ones. An error names
// its field.
//
// A picker costs time in proportion to the number of READY endpoints. So above 256 of
// them, endpoints that become READY or are lost one after the other are gathered for up
// to 1 µs for each READY endpoint (10 ms for 10,000). The first READY endpoint, any
// change of the policy's state and updates from the resolver never wait.
//
// Endpoints keep their place in the sequence from picker to picker, whatever
// changes: weights, the READY set, the endpoints themselves or their order. So
// frequent updates do not favour heavy endpoints, although A34's deadlines begin
// anew with each picker.
package weightedroundrobin

import (
	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/shell"
)

// Name is the name under which the policy is registered.
const Name = "understudy_weighted_round_robin"

func init() { shell.Register(Name, newBuilder) }

// newBuilder returns the policy's builder under the given name.
func newBuilder(name string) balancer.Builder { return spec(defaultLeaf).Builder(name) }
