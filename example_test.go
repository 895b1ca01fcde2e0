package understudy_test

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
)

func Example() {
	cc, err := grpc.NewClient("failover:///us-east.example.com:443,eu-west.example.com:443",
		understudy.With(discovery.WithServiceConfig(`{"healthCheckConfig": {"serviceName": ""}}`)),
		grpc.WithTransportCredentials(credentials.NewTLS(nil)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cc.Close()
	fmt.Println(cc.Target())
	// Output: failover:///us-east.example.com:443,eu-west.example.com:443
}

func ExampleRegisterSpecNames() {
	// At the top of main, before any channel is made.
	if err := understudy.RegisterSpecNames(); err != nil {
		fmt.Println(err)
	}
	// Output:
}
