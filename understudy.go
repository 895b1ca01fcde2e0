// Package understudy gives gRPC clients failover and weighted load balancing,
// without a mesh. Importing it registers the policies and the resolvers, under names
// of their own:
//
//	import _ "github.com/understudy-lb/understudy"
//
//	cc, err := grpc.NewClient("failover:///us-east.example.com:443,eu-west.example.com:443", …)
//	cc, err := grpc.NewClient("file:///etc/endpoints.yaml", …)
//	cc, err := grpc.NewClient("eds://xds.example.com:18000/payments", …)
//	cc, err := grpc.NewClient("srv:///payments.example.com", …)
//
// Targets are documented in the packages below discovery, policies in those of their
// names. Importing the package starts nothing: no listener, no goroutine.
package understudy

import (
	"google.golang.org/grpc"

	"github.com/understudy-lb/understudy/discovery" // and all policies
	_ "github.com/understudy-lb/understudy/discovery/eds"
	_ "github.com/understudy-lb/understudy/discovery/failover"
	_ "github.com/understudy-lb/understudy/discovery/file"
	_ "github.com/understudy-lb/understudy/discovery/srv"
)

// With returns one dial option that carries all options: those of package discovery,
// which every source has, and those of the sources' packages, such as the credentials
// of eds. They hold for every source that discovery.Register has registered when With
// is called. The dial option may be used for several channels.
//
//	cc, err := grpc.NewClient(target,
//		understudy.With(discovery.WithServiceConfig(json), eds.WithInsecure()), …)
//
// Of several on one channel only the first has an effect: gRPC takes the first builder
// of a scheme that a channel is given, so options cannot add up. For the same reason a
// builder of one of these schemes that grpc.WithResolvers gives before it replaces the
// options, and one given after it has no effect.
//
// A mistake in an option fails the channel's calls with an error that says so.
func With(opts ...discovery.Option) grpc.DialOption {
	return grpc.WithResolvers(discovery.Registered(opts...)...)
}
