package priority_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	_ "github.com/understudy-lb/understudy/policy/priority"
)

// The channel has two priorities. The server of the first one is down, so calls go to the second
// one.
func Example() {
	near, far := listen(), listen()
	if err := near.Close(); err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(far) }()
	defer server.Stop()

	// The path of an endpoint names the child that the endpoint belongs to.
	endpoint := func(l net.Listener, child string) resolver.Endpoint {
		return hierarchy.Set(resolver.Endpoint{Addresses: []resolver.Address{{Addr: l.Addr().String()}}}, child)
	}
	r := manual.NewBuilderWithScheme("example")
	r.InitialState(resolver.State{Endpoints: []resolver.Endpoint{endpoint(near, "near"), endpoint(far, "far")}})

	conn, err := grpc.NewClient("example:///service", grpc.WithResolvers(r),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"understudy_priority": {
			"children": {
				"near": {"config": [{"pick_first": {}}]},
				"far":  {"config": [{"pick_first": {}}]}
			},
			"priorities": ["near", "far"]
		}}]}`))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = conn.Close() }()

	var answered peer.Peer
	_, err = healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{}, grpc.Peer(&answered))
	fmt.Println(err, answered.Addr.String() == far.Addr().String())
	// Output: <nil> true
}

func listen() net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	return l
}
