package discovery_test

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy/discovery"
)

// catalogue is a registry of services, of one's own.
type catalogue interface {
	LookUp(ctx context.Context, service string) ([]machine, error)
}

type machine struct {
	address string
	cores   uint32
	remote  bool
}

// newBuilder returns a builder for targets such as catalogue:///checkout: machines that
// are near are used first, by their size, and remote ones when no near one is left.
func newBuilder(c catalogue) *discovery.Builder {
	return discovery.NewBuilder("catalogue", func(t *discovery.Target) ([]discovery.Part, error) {
		service := t.Endpoint()
		source := discovery.Poll(10*time.Second, func(ctx context.Context) (discovery.Answer, error) {
			machines, err := c.LookUp(ctx, service)
			if err != nil {
				return discovery.Answer{}, fmt.Errorf("service %s: %w", service, err)
			}
			var endpoints []discovery.Endpoint
			for _, m := range machines {
				e := discovery.Endpoint{Address: m.address, Weight: m.cores, Locality: "near"}
				if m.remote {
					e.Priority, e.Locality = 1, "remote"
				}
				endpoints = append(endpoints, e)
			}
			return discovery.Answer{Cluster: discovery.Cluster(endpoints...)}, nil
		})
		return []discovery.Part{{Source: source}}, nil
	})
}

// A source of one's own: a function that is asked every ten seconds. To make it known
// to all channels and to understudy.With, call discovery.Register(newBuilder(…)) in an
// init function.
func Example() {
	near, remote := startBackend("near"), startBackend("remote")
	defer remote.Stop()
	builder := newBuilder(machines{{near.address, 8, false}, {remote.address, 4, true}})
	conn, err := grpc.NewClient("catalogue:///checkout", grpc.WithResolvers(builder),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println("answered by", near.caller(conn))
	near.Stop()
	fmt.Println("answered by", remote.caller(conn))
	// Output:
	// answered by near
	// answered by remote
}
