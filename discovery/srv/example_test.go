package srv_test

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

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/internal/testing/dnstest"
)

// All calls go to the server with the lower priority number while it works. The target contains the
// address of the example's DNS server. Without an address, the system's DNS server is used.
func Example() {
	primary, primaryPort := serve()
	backup, backupPort := serve()
	defer backup.Stop()

	dns := dnstest.Start()
	defer dns.Stop()
	dns.Set("host.test", "A", "127.0.0.1")
	dns.Set("_grpc._tcp.shop.test", "SRV",
		fmt.Sprintf("10 1 %d host.test.", primaryPort), // priority, weight, port, target
		fmt.Sprintf("20 1 %d host.test.", backupPort))

	conn, err := understudy.NewClient("srv://"+dns.Address()+"/shop.test", understudy.Recommended(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	fmt.Println("the primary answers:", portOf(conn) == primaryPort)
	primary.Stop()
	fmt.Println("the backup answers:", portOf(conn) == backupPort)
	// Output:
	// the primary answers: true
	// the backup answers: true
}

func serve() (*grpc.Server, int) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	s := grpc.NewServer()
	healthpb.RegisterHealthServer(s, health.NewServer())
	go s.Serve(listener)
	return s, listener.Addr().(*net.TCPAddr).Port
}

func portOf(conn *grpc.ClientConn) int {
	for {
		var from peer.Peer
		_, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true), grpc.Peer(&from))
		if err == nil {
			return from.Addr.(*net.TCPAddr).Port
		}
	}
}
