// Package scripttest has a source whose answers are sent by the test, and helpers that open
// channels and start servers. It needs a synctest bubble.
package scripttest

import (
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/settle"
)

// Source is a source whose answers are sent by the test, through Receiver. That's set when a
// channel starts the source.
type Source struct{ Receiver *discovery.Receiver }

func (*Source) Check(bool) error { return nil }

func (s *Source) Start(r *discovery.Receiver) (discovery.Started, error) {
	s.Receiver = settle.Receiver(r)
	return discovery.Started{}, nil
}

// Open opens a channel to story:///name, which resolves to the given discovery mechanisms. It's
// closed when the test ends.
func Open(t *testing.T, name string, mechanisms []discovery.Mechanism, options []given.Option, dialOptions ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	builder := given.NewBuilder("story", func(*discovery.Target) ([]discovery.Mechanism, error) { return mechanisms, nil }, options...)
	dialOptions = append([]grpc.DialOption{grpc.WithResolvers(builder), grpc.WithTransportCredentials(insecure.NewCredentials())}, dialOptions...)
	cc, err := grpc.NewClient("story:///"+name, dialOptions...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() }) //nolint:errcheck // the test ends
	cc.Connect()
	synctest.Wait()
	return cc
}

func Serve(t *testing.T, healthServer healthpb.HealthServer, options ...grpc.ServerOption) *bufconn.Listener {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(options...)
	healthpb.RegisterHealthServer(server, healthServer)
	go server.Serve(listener) //nolint:errcheck // Serve returns after Stop
	t.Cleanup(server.Stop)
	return listener
}
