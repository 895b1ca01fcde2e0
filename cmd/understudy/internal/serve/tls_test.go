package serve

import (
	"crypto/tls"
	"path/filepath"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/credentials"

	"github.com/understudy-lb/understudy/internal/testing/testcert"
)

func TestMutualTLS(t *testing.T) {
	a := testcert.New(t)
	pair := a.Pair("server", "127.0.0.1")
	path := filepath.Join(t.TempDir(), "a.yaml")
	write(t, path, endpoints("1"))
	s, _ := start(t, Options{Paths: []string{path}, TLS: TLS{Certificate: pair.Certificate, Key: pair.Key, ClientCA: a.File()}})
	request := &discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceNames: []string{"a"}}

	client := a.Pair("client", "client").Load(t)
	stream := open(t, s, credentials.NewTLS(&tls.Config{RootCAs: a.Pool(), Certificates: []tls.Certificate{client}}))
	send(t, stream, request)
	receive(t, stream)

	// A renewed certificate is used for the next connection.
	a.Pair("server", "127.0.0.1", "renewed")
	stream = open(t, s, credentials.NewTLS(&tls.Config{RootCAs: a.Pool(), Certificates: []tls.Certificate{client}, ServerName: "renewed"}))
	send(t, stream, request)
	receive(t, stream)
}

func TestClientWithoutACertificateIsTurnedAway(t *testing.T) {
	a := testcert.New(t)
	pair := a.Pair("server", "127.0.0.1")
	path := filepath.Join(t.TempDir(), "a.yaml")
	write(t, path, endpoints("1"))
	s, _ := start(t, Options{Paths: []string{path}, TLS: TLS{Certificate: pair.Certificate, Key: pair.Key, ClientCA: a.File()}})
	conn, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{RootCAs: a.Pool(), NextProtos: []string{"h2"}})
	if err != nil {
		return // refused in the handshake
	}
	defer conn.Close()
	// With TLS 1.3 the client learns of it with the first bytes it reads.
	if _, err := conn.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("a client without a certificate is told %v", err)
	}
}
