// Command client is the example client in the README. It calls a health service in us-east. If
// us-east is unavailable, it calls the service in eu-west.
package main

import (
	"context"
	"log"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/understudy-lb/understudy"
)

func main() {
	const target = "us-east.example.com:443,eu-west.example.com:443"
	cc, err := understudy.NewClient(target, understudy.Recommended(), grpc.WithTransportCredentials(credentials.NewTLS(nil)))
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	answer, err := healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{})
	log.Println(answer.GetStatus(), err)
}
