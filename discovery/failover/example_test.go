package failover_test

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/failover"
)

func Example() {
	conn, err := understudy.NewClient("failover:///us-east.example.com:443,eu-west.example.com:443",
		understudy.Recommended(), grpc.WithTransportCredentials(credentials.NewTLS(nil)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println("calls go to us-east, and to eu-west while us-east cannot be reached")
	// Output: calls go to us-east, and to eu-west while us-east cannot be reached
}

// Validate reports a mistake in a target before the first call.
func Example_mistake() {
	err := understudy.Validate("failover://us-east.example.com,eu-west.example.com", understudy.Options{})
	fmt.Println(err)
	// Output: understudy: failover: target has a host: "us-east.example.com,eu-west.example.com"; want the form failover:///us-east.example.com:443,eu-west.example.com:443, with three slashes
}

// If HTTPS_PROXY is set, this program uses the proxy, but looks up names itself.
func ExampleWithLocalDNSResolution() {
	options := understudy.Recommended()
	options.Sources = []discovery.SourceOption{failover.WithLocalDNSResolution()}
	conn, err := understudy.NewClient("us-east.example.com:443,eu-west.example.com:443",
		options, grpc.WithTransportCredentials(credentials.NewTLS(nil)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(conn.Target())
	// Output: failover:///us-east.example.com:443,eu-west.example.com:443
}
