// Package understudy gives gRPC clients failover and weighted load balancing,
// without a mesh. Importing it registers the policies and the resolvers, under names
// of their own:
//
//	import _ "github.com/understudy-lb/understudy"
//
//	cc, err := grpc.NewClient("failover:///us-east.example.com:443,eu-west.example.com:443", …)
//	cc, err := grpc.NewClient("file:///etc/endpoints.yaml", …)
//	cc, err := grpc.NewClient("eds://xds.example.com:18000/payments", …)
//
// Targets are documented in the packages below discovery, policies in those of their
// names. Nothing else happens on import: no listener, no goroutine.
package understudy

import (
	"google.golang.org/grpc"

	"github.com/understudy-lb/understudy/discovery/eds"
	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/discovery/file"
	_ "github.com/understudy-lb/understudy/drop"               // understudy_drop
	_ "github.com/understudy-lb/understudy/pickfirst"          // understudy_pick_first
	_ "github.com/understudy-lb/understudy/priority"           // understudy_priority
	_ "github.com/understudy-lb/understudy/weightedroundrobin" // understudy_weighted_round_robin
	_ "github.com/understudy-lb/understudy/weightedtarget"     // understudy_weighted_target
)

// WithServiceConfig returns a dial option that gives the user's service config, in
// JSON, to every resolver of this module: its methodConfig, retryThrottling,
// healthCheckConfig and so on then hold beside the load balancing that the resolver
// configures.
//
// It takes the place of grpc.WithDefaultServiceConfig, which has no effect on such a
// channel: a resolver's service config replaces the default one whole. The config
// must leave out loadBalancingConfig and loadBalancingPolicy. One that is invalid
// makes the channel's calls fail with an error that says why.
//
// Of several uses of this option on one channel the last holds.
func WithServiceConfig(json string) grpc.DialOption {
	return grpc.WithResolvers(
		eds.NewBuilder(eds.WithServiceConfig(json)),
		failover.NewBuilder(failover.WithServiceConfig(json)),
		file.NewBuilder(file.WithServiceConfig(json)),
	)
}
