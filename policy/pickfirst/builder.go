// Package pickfirst implements the load-balancing policy understudy_pick_first. It connects to the
// first address that works and sends all calls there (gRFC A62). If there are both IPv4 and IPv6
// addresses, it alternates between them, and connection attempts overlap (gRFC A61). All of this
// project's policy trees use it for their leaves instead of grpc-go's pick_first.
//
// Importing the package registers the policy. Its configuration in JSON:
//
//	{"understudy_pick_first": {"shuffleAddressList": false}}
//
//	field               type  default  range        from
//	shuffleAddressList  bool  false    false, true  A62, A113
//
// With shuffleAddressList, endpoints are tried in random order, in which those with more weight
// tend to come first. Each endpoint keeps its random number for as long as the policy exists.
//
// Unknown fields are ignored. We log them once, along with a list of the known ones. If a field is
// invalid, the error names it.
//
// TRANSIENT_FAILURE is sticky. Once a pass has failed for every address, no other state is
// published until there is a READY connection. docs/pick-first.md compares the policy with
// grpc-go's and with the text of A62.
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

// OwnsSubConns implements shell.OwnsSubConns. Close shuts down all subchannels of the policy.
func (builder) OwnsSubConns() {}

// Build builds a policy. UpdateClientConnState and Close don't return until their effects are
// published. ResolverError and ExitIdle don't wait for other calls. After Close, nothing is
// published anymore.
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
