// Command client is the client of the README: it asks a service for its health, in
// us-east and, if that is gone, in eu-west.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/health" // lets healthCheckConfig work
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
)

// Calls that a dying backend took along are tried again, and a backend that says
// NOT_SERVING gets none.
const serviceConfig = `{
	"methodConfig": [{
		"name": [{}],
		"retryPolicy": {
			"maxAttempts": 4,
			"initialBackoff": "0.05s",
			"maxBackoff": "1s",
			"backoffMultiplier": 2,
			"retryableStatusCodes": ["UNAVAILABLE"]
		}
	}],
	"retryThrottling": {"maxTokens": 1000, "tokenRatio": 0.1},
	"healthCheckConfig": {"serviceName": ""}
}`

func main() {
	cc, err := grpc.NewClient("failover:///us-east.example.com:443,eu-west.example.com:443",
		// Without a refresh new backends of a name stay idle until a connection fails.
		understudy.With(discovery.WithServiceConfig(serviceConfig), discovery.WithRefresh(30*time.Second)),
		grpc.WithTransportCredentials(credentials.NewTLS(nil)),
		// Without keepalive a backend that hangs, or is cut off, stays in use. Time,
		// Timeout and the failover timer's 10 s are less than a call's deadline.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time:                10 * time.Second,
			Timeout:             5 * time.Second,
			PermitWithoutStream: true,
		}),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer cc.Close() //nolint:errcheck // the program ends

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	answer, err := healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.GetStatus())
}
