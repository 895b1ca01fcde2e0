package discovery_test

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
)

type catalogue interface {
	LookUp(ctx context.Context, service string) ([]machine, error)
}

type machine struct {
	address string
	cores   uint32
	remote  bool
}

// register registers a source for targets such as catalogue:///checkout. Calls go to the near
// machines in proportion to their number of cores. They go to the remote machines only if no near
// machine is usable.
func register(c catalogue) {
	discovery.Register("catalogue", func(t *discovery.Target) ([]discovery.Mechanism, error) {
		service := t.Endpoint()
		source := discovery.Poll(10*time.Second, func(ctx context.Context) (discovery.Answer, error) {
			machines, err := c.LookUp(ctx, service)
			if err != nil {
				return discovery.Answer{}, fmt.Errorf("service %s: %w", service, err)
			}
			near, remote := discovery.Locality{Region: "near"}, discovery.Locality{Region: "remote"}
			for _, m := range machines {
				e := discovery.Endpoint{Addresses: []string{m.address}, Weight: m.cores}
				if m.remote {
					remote.Endpoints = append(remote.Endpoints, e)
				} else {
					near.Endpoints = append(near.Endpoints, e)
				}
			}
			return discovery.Answer{Priorities: []discovery.Priority{
				{Localities: []discovery.Locality{near}},
				{Localities: []discovery.Locality{remote}},
			}}, nil
		})
		return []discovery.Mechanism{{Source: source}}, nil
	})
}

// The source of this example is a function that is polled every ten seconds. A program would call
// register in an init function. After that, understudy.NewClient accepts targets with the scheme
// catalogue.
func Example() {
	near, remote := startBackend("near"), startBackend("remote")
	defer remote.Stop()
	register(machines{{near.address, 8, false}, {remote.address, 4, true}})
	conn, err := understudy.NewClient("catalogue:///checkout", understudy.Recommended(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println("answered by", near.awaitCall(conn))
	near.Stop()
	fmt.Println("answered by", remote.awaitCall(conn))
	// Output:
	// answered by near
	// answered by remote
}
