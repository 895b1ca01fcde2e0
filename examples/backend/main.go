// Command backend is a gRPC server for the examples. It serves grpc.health.v1.Health at an address.
// With -errors, it answers each call with INTERNAL.
//
//	backend 127.0.0.1:50051
package main

import (
	"context"
	"flag"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy"
)

func main() {
	fails := flag.Bool("errors", false, "answer each call with INTERNAL")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("backend: want one address, such as 127.0.0.1:50051")
	}
	listener, err := net.Listen("tcp", flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(understudy.Recommended().ServerKeepalive(),
		grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if *fails {
				return nil, status.Error(codes.Internal, "this backend is broken")
			}
			return handler(ctx, request)
		}))
	healthpb.RegisterHealthServer(server, health.NewServer())
	log.Fatal(server.Serve(listener))
}
