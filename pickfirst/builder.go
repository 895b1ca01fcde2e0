// Package pickfirst is the load-balancing policy understudy_pick_first: it connects
// to the first address that works and sends every call there (gRFC A62), trying
// addresses of both families with overlapping attempts (gRFC A61). It is the leaf
// of all this project's trees, and stands in for gRPC-Go's pick_first.
//
// Importing the package registers the policy. Its configuration in JSON:
//
//	{"understudy_pick_first": {"shuffleAddressList": false}}
//
//	field               type  default  range        from
//	shuffleAddressList  bool  false    false, true  A62, A113
//
// shuffleAddressList makes each list of endpoints be tried in a random order, in which
// endpoints with more weight tend to the front. What is drawn for an endpoint stays with
// it as long as the policy lives.
//
// A field that is not known is ignored, and logged once with a list of those that are;
// an error names its field.
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
)

// Name is the name under which the policy is registered.
const Name = "understudy_pick_first"

func init() { balancer.Register(NewBuilder(Name)) }

// NewBuilder returns the builder of the policy under another name. It is what
// understudy.RegisterSpecNames registers; others need only the import.
func NewBuilder(name string) balancer.Builder { return builder{name} }

type builder struct{ name string }

// Name returns the name it was made with.
func (b builder) Name() string { return b.name }

// OwnsSubConns tells policies of this project that Close shuts down every
// subchannel.
func (builder) OwnsSubConns() {}

// Build builds a policy. Its UpdateClientConnState and Close return when what they ask
// for has been done and published, ResolverError and ExitIdle at once if other events
// are being handled. All may be called from any goroutine, but Close last;
// after it nothing is published any more.
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
