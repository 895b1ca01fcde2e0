// Package pickfirst is the load-balancing policy understudy_pick_first. It connects to
// the first address that works and sends every call there (gRFC A62). It tries
// addresses of both families with overlapping attempts (gRFC A61). It is the leaf of
// all this project's trees, in place of gRPC-Go's pick_first.
//
// Importing the package registers the policy. Its configuration in JSON:
//
//	{"understudy_pick_first": {"shuffleAddressList": false}}
//
//	field               type  default  range        from
//	shuffleAddressList  bool  false    false, true  A62, A113
//
// With shuffleAddressList, each list of endpoints is tried in a random order, in which
// endpoints with more weight tend to the front. The number drawn for an endpoint stays
// the same as long as the policy lives.
//
// An unknown field is ignored, and logged once with a list of the known ones. An error
// names its field.
//
// TRANSIENT_FAILURE is sticky: from the first pass in which every address failed
// until a connection is READY, nothing else is published, whatever the subchannels
// do in between. docs/pick-first.md compares it with gRPC-Go's, and with A62
// sentence by sentence.
package pickfirst

import (
	"encoding/json"
	"hash/maphash"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/shell"
)

// Name is the name under which the policy is registered.
const Name = "understudy_pick_first"

func init() { shell.Register(Name, newBuilder) }

// newBuilder returns the policy's builder under the given name.
func newBuilder(name string) balancer.Builder { return builder{name} }

type builder struct{ name string }

// Name returns the name it was made with.
func (b builder) Name() string { return b.name }

// OwnsSubConns tells policies of this project that Close shuts down every
// subchannel.
func (builder) OwnsSubConns() {}

// Build builds a policy. Its UpdateClientConnState and Close return when all has been
// done and published. ResolverError and ExitIdle return at once if other events are
// being handled. All may be called from any goroutine, Close last; after it nothing is
// published.
func (builder) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	return &policy{cc: cc, seed: maphash.MakeSeed()}
}

// ParseConfig parses the policy's configuration; its errors name the field.
func (builder) ParseConfig(raw json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	c := &lbconfig.PickFirst{}
	if err := lbconfig.Parse("pick_first", raw, c); err != nil {
		return nil, err
	}
	return c, nil
}
