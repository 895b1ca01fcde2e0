package failover_test

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/failover"
)

func Example() {
	const target = "failover:///us-east.example.com:443,eu-west.example.com:443"
	if err := failover.Validate(target); err != nil {
		fmt.Println(err)
		return
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(credentials.NewTLS(nil)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println("calls go to us-east, and to eu-west while us-east cannot be reached")
	// Output: calls go to us-east, and to eu-west while us-east cannot be reached
}

// A channel with a retry policy of its own. A resolver's service config replaces the
// one of grpc.WithDefaultServiceConfig, so the policy is given to the resolver.
func ExampleWithServiceConfig() {
	builder := failover.NewBuilder(discovery.WithServiceConfig(`{
		"methodConfig": [{
			"name": [{"service": "helloworld.Greeter"}],
			"retryPolicy": {
				"maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
				"retryableStatusCodes": ["UNAVAILABLE"]
			}
		}]
	}`))
	conn, err := grpc.NewClient("failover:///us-east.example.com:443,eu-west.example.com:443",
		grpc.WithTransportCredentials(credentials.NewTLS(nil)), grpc.WithResolvers(builder))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(conn.Target())
	// Output: failover:///us-east.example.com:443,eu-west.example.com:443
}

func ExampleValidate() {
	fmt.Println(failover.Validate("failover://us-east.example.com,eu-west.example.com"))
	// Output: failover: target has a host: "us-east.example.com,eu-west.example.com"; want the form failover:///us-east.example.com:443,eu-west.example.com:443, with three slashes
}
