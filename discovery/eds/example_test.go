package eds_test

import (
	"crypto/tls"
	"fmt"
	"log"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/eds"
)

// The client connects to the management server with mutual TLS. It verifies the server against the
// system's root certificates.
func Example() {
	var certificate tls.Certificate // from tls.LoadX509KeyPair
	options := understudy.Recommended()
	options.Sources = []discovery.SourceOption{
		eds.WithTransportCredentials(credentials.NewTLS(&tls.Config{
			Certificates: []tls.Certificate{certificate},
		})),
	}
	conn, err := understudy.NewClient("eds://xds.example.com:18000/payments.example.com", options,
		grpc.WithTransportCredentials(credentials.NewTLS(nil)), // credentials of the calls
	)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	fmt.Println(conn.Target())
	// Output: eds://xds.example.com:18000/payments.example.com
}
