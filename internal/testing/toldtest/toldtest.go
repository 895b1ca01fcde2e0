// Package toldtest has a source that a test controls, and channels and servers for its endpoints.
// It works only in a synctest bubble. For tests only.
package toldtest

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

// Source is a source that a test controls through its Receiver. The Receiver is set while a
// channel is open.
type Source struct{ Receiver *discovery.Receiver }

func (*Source) Check(bool) error { return nil }

func (s *Source) Start(r *discovery.Receiver) (discovery.Started, error) {
	s.Receiver = settle.Receiver(r)
	return discovery.Started{}, nil
}

// Open opens a channel to story:///name with these discovery mechanisms. The channel closes when
// the test ends.
func Open(t *testing.T, name string, parts []discovery.Mechanism, options []given.Option, dial ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	builder := given.NewBuilder("story", func(*discovery.Target) ([]discovery.Mechanism, error) { return parts, nil }, options...)
	dial = append([]grpc.DialOption{grpc.WithResolvers(builder), grpc.WithTransportCredentials(insecure.NewCredentials())}, dial...)
	cc, err := grpc.NewClient("story:///"+name, dial...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() }) //nolint:errcheck // there is nothing to lose
	cc.Connect()
	synctest.Wait()
	return cc
}

func Serve(t *testing.T, checks healthpb.HealthServer, options ...grpc.ServerOption) *bufconn.Listener {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(options...)
	healthpb.RegisterHealthServer(server, checks)
	go server.Serve(listener) //nolint:errcheck // Serve returns after Stop
	t.Cleanup(server.Stop)
	return listener
}
