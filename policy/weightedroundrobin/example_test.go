package weightedroundrobin_test

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	_ "github.com/understudy-lb/understudy/policy/weightedroundrobin"
)

// The second server has three times the weight of the first, and gets three times as many calls.
func Example() {
	light, heavy := serve(), serve()
	defer light.Stop()
	defer heavy.Stop()

	endpoints := manual.NewBuilderWithScheme("example")
	endpoints.InitialState(resolver.State{Endpoints: []resolver.Endpoint{
		light.endpoint(1),
		heavy.endpoint(3),
	}})
	conn, err := grpc.NewClient("example:///",
		grpc.WithResolvers(endpoints),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"understudy_weighted_round_robin": {}}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	for seen := map[string]bool{}; len(seen) < 2; {
		seen[call(conn)] = true
	}
	calls := map[string]int{}
	for range 40 {
		calls[call(conn)]++
	}
	fmt.Println(calls[light.address], calls[heavy.address])
	// Output: 10 30
}

type server struct {
	*grpc.Server
	address string
}

func serve() server {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	s := grpc.NewServer()
	healthpb.RegisterHealthServer(s, health.NewServer())
	go s.Serve(listener)
	return server{s, listener.Addr().String()}
}

func (s server) endpoint(w uint32) resolver.Endpoint {
	e := resolver.Endpoint{Addresses: []resolver.Address{{Addr: s.address}}}
	return weight.Set(e, weight.EndpointInfo{Weight: w})
}

func call(conn *grpc.ClientConn) string {
	var p peer.Peer
	_, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{},
		grpc.Peer(&p), grpc.WaitForReady(true))
	if err != nil {
		return err.Error()
	}
	return p.Addr.String()
}
