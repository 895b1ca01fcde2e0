package failover_test

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
	_ "github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/dnstest"
)

// The names are looked up every 30 s, so that new backends get calls even if no connection has
// failed. Here, each entry of the target also contains the address of the example's DNS server.
// Usually, a name and a port are enough.
func Example_twoNames() {
	us, usPort := exampleServer()
	eu, euPort := exampleServer()
	defer eu.Stop()
	dns := dnstest.Start()
	defer dns.Stop()
	dns.Set("us.test", "A", "127.0.0.1")
	dns.Set("eu.test", "A", "127.0.0.1")

	conn := exampleClient(fmt.Sprintf("failover:///dns://%s/us.test:%d,dns://%s/eu.test:%d?refresh=30s",
		dns.Address(), usPort, dns.Address(), euPort))
	defer conn.Close()
	fmt.Println("us answers:", answeredBy(conn) == usPort)
	us.Stop()
	fmt.Println("eu answers:", answeredBy(conn) == euPort)
	// Output:
	// us answers: true
	// eu answers: true
}

// Calls go to the endpoints that a management server sends. If these endpoints fail, calls go to
// those of a DNS name (gRFC A37).
func Example_edsBeforeDNS() {
	first, firstPort := exampleServer()
	last, lastPort := exampleServer()
	defer last.Stop()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	manager := adstest.Serve(listener, func(s *adstest.Stream) error {
		if err := s.Respond("1", "a", adstest.Cluster("checkout", fmt.Sprintf("127.0.0.1:%d", firstPort))); err != nil {
			return err
		}
		return s.Drain()
	})
	defer manager.Stop()

	conn := exampleClient(fmt.Sprintf("failover:///eds://%s/checkout,localhost:%d", listener.Addr(), lastPort))
	defer conn.Close()
	fmt.Println("what the management server knows answers:", answeredBy(conn) == firstPort)
	first.Stop()
	fmt.Println("what DNS knows answers:", answeredBy(conn) == lastPort)
	// Output:
	// what the management server knows answers: true
	// what DNS knows answers: true
}

// An entry may have its own parameters after %3F. A plain question mark would begin the parameters
// of the whole target. Here, the certificate of the second entry must be valid for eu.example.com.
func ExampleValidate_parameters() {
	fmt.Println(understudy.Validate("failover:///us.example.com:443,10.0.0.1:443%3Fauthority=eu.example.com?refresh=30s", understudy.Options{}))
	// Output: <nil>
}

func exampleServer() (*grpc.Server, int) {
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		log.Fatal(err)
	}
	s := grpc.NewServer()
	healthpb.RegisterHealthServer(s, health.NewServer())
	go s.Serve(listener)
	return s, listener.Addr().(*net.TCPAddr).Port
}

func exampleClient(target string) *grpc.ClientConn {
	conn, err := understudy.NewClient(target, understudy.Recommended(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	return conn
}

func answeredBy(conn *grpc.ClientConn) int {
	for {
		var from peer.Peer
		_, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true), grpc.Peer(&from))
		if err == nil {
			return from.Addr.(*net.TCPAddr).Port
		}
	}
}
