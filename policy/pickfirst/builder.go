// Package pickfirst implements the load-balancing policy understudy_pick_first. It connects to the
// first address that works and sends all calls there (gRFC A62). It tries the addresses of both
// families with overlapping attempts (gRFC A61). All of this project's policy trees use it as their
// leaf instead of grpc-go's pick_first.
//
// Importing the package registers the policy. Its configuration in JSON:
//
//	{"understudy_pick_first": {"shuffleAddressList": false}}
//
//	field               type  default  range        from
//	shuffleAddressList  bool  false    false, true  A62, A113
//
// With shuffleAddressList, the endpoints are tried in a random order, in which endpoints with more
// weight tend to come first. The random number of an endpoint does not change while the policy
// exists.
//
// Unknown fields are ignored, and logged once with a list of the known ones. Errors name the invalid
// field.
//
// TRANSIENT_FAILURE is sticky: after a pass in which every address failed, no other state is
// published until a connection is READY. docs/pick-first.md compares the policy with grpc-go's, and
// with the text of A62.
package pickfirst

import (
	"encoding/json"
	"hash/maphash"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/lb/shell"
)

// Name is the policy's name in service configs.
const Name = "understudy_pick_first"

func init() { shell.Register(Name, newBuilder) }

func newBuilder(name string) balancer.Builder { return builder{name} }

type builder struct{ name string }

func (b builder) Name() string { return b.name }

// OwnsSubConns implements shell.OwnsSubConns: Close of the policy shuts down all of its
// subchannels.
func (builder) OwnsSubConns() {}

// Build builds a policy. UpdateClientConnState and Close return after their effects have been
// published. ResolverError and ExitIdle do not wait for other calls. Nothing is published after
// Close.
func (builder) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	return &policy{cc: cc, seed: maphash.MakeSeed()}
}

func (builder) ParseConfig(raw json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	c := &lbconfig.PickFirst{}
	if err := lbconfig.Parse("pick_first", raw, c); err != nil {
		return nil, err
	}
	return c, nil
}
