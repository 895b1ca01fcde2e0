// Package understudy gives gRPC clients failover and weighted load balancing, without a service
// mesh:
//
//	options := understudy.Recommended()
//	cc, err := understudy.NewClient("us-east.example.com:443,eu-west.example.com:443", options, …)
//	cc, err := understudy.NewClient("file:///etc/endpoints.yaml", options, …)
//	cc, err := understudy.NewClient("eds://xds.example.com:18000/payments", options, …)
//	cc, err := understudy.NewClient("srv:///payments.example.com", options, …)
//
// Importing the package registers its policies and resolvers under their own names. It doesn't
// start any goroutines or listeners. Targets are documented in the packages below discovery, and
// each policy has its own package.
package understudy

import (
	_ "github.com/understudy-lb/understudy/discovery/eds"
	_ "github.com/understudy-lb/understudy/discovery/failover"
	_ "github.com/understudy-lb/understudy/discovery/file"
	_ "github.com/understudy-lb/understudy/discovery/srv"
	_ "github.com/understudy-lb/understudy/internal/channel/join"
)
