// Package drop is the policy understudy_drop: it drops a configured part of the
// calls, and passes the others on to its one child. A control plane uses it to shed
// load (drop_overloads of a ClusterLoadAssignment; gRFC A27, gRFC A37).
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
// Each call is tried against the categories in their order, each by chance,
// independently: here 5 % of the calls are dropped by "lb", and 10 % of the others by
// "throttle". Without categories nothing is dropped and the child's picker is passed on
// as it is.
//
// Of a list of policies the first that is registered is taken. A field that is not known is
// ignored, and logged once with a list of those that are; an error names its field.
//
// Calls are dropped only while the child is READY: otherwise it is the child's state
// that decides, so that a lower priority can step in. A dropped call fails with
// UNAVAILABLE and a message that names the category, also if it waits for ready, and
// is counted in the metric understudy.drop.dropped. The policy's state is its child's,
// and so are the paths of the endpoints, from which nothing is taken off.
package drop

import (
	"encoding/json"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/internal/lbconfig"
)

// Name is the name under which the policy is registered.
const Name = "understudy_drop"

var logger = grpclog.Component("understudy")

func init() { balancer.Register(NewBuilder(Name)) }

// NewBuilder returns the policy's builder under another name; under Name it is
// registered already.
//
// The builder is safe for concurrent use. The policies it builds follow the contract
// of balancer.Balancer: their methods are called one at a time, and none after Close.
func NewBuilder(name string) balancer.Builder { return builder{name} }

type builder struct{ name string }

// Name returns the name given to NewBuilder.
func (b builder) Name() string { return b.name }

// OwnsSubConns says that no subchannel is left after Close.
func (b builder) OwnsSubConns() {}

// ParseConfig parses the policy's configuration; its errors name the field.
func (b builder) ParseConfig(raw json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	c := &lbconfig.Drop{}
	if err := lbconfig.Parse("drop", raw, c); err != nil {
		return nil, err
	}
	return c, nil
}

// Build builds a policy.
func (b builder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	return newPolicy(cc, opts)
}
