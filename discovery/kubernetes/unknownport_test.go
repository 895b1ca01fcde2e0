package kubernetes

import (
	"context"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
)

const unknownPort = "slice b of web.shop: the target gives no port; want one of grpc-web:8080, metrics:9090"

// twoPorts returns a slice event whose port is unknown to a target without a port.
func twoPorts(kind, name, endpoints string) string {
	return strings.Replace(sliceEvent(kind, name, endpoints), `"ports":[{"name":"grpc","port":80}]`, `"ports":[{"name":"metrics","port":9090},{"name":"grpc-web","port":8080}]`, 1)
}

func TestCallErrorSaysThatPortIsUnknown(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	backend := grpc.NewServer()
	healthpb.RegisterHealthServer(backend, health.NewServer())
	go func() { _ = backend.Serve(listener) }()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	replaced := make(chan struct{})
	s := &fakeAPIServer{serve: func(_ int, _ url.Values, w io.Writer, done <-chan struct{}) int {
		writeAll(w, strings.Replace(sliceEvent("ADDED", "a", "127.0.0.1"), `"port":80`, `"port":`+port, 1), bookmark("7", true))
		<-replaced
		writeAll(w, twoPorts("ADDED", "b", "127.0.0.2"), strings.Replace(sliceEvent("MODIFIED", "a", ""), `"port":80`, `"port":`+port, 1))
		return waitUntilDone(done)
	}}
	cc, err := understudy.NewClient("kubernetes:///web.shop", understudy.Options{Sources: []discovery.SourceOption{WithTransport("http://x", s)}},
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := healthpb.NewHealthClient(cc)
	if _, err := client.Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
	backend.Stop()
	close(replaced)
	for err == nil || !strings.Contains(err.Error(), unknownPort) {
		if _, err = client.Check(ctx, &healthpb.HealthCheckRequest{}); ctx.Err() != nil {
			t.Fatalf("calls fail with %v, want the reason %s", err, unknownPort)
		}
	}
}
