package overload

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/balancer/leastrequest"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

// tailWorld has two priorities of ten backends. The calls of one of the ten take ten times as long,
// those of the others differ by up to 20 %. The load is 60 % of what a priority can do.
func tailWorld(deadline, from time.Duration, calls float64) World {
	var servers []Server
	for i := range time.Duration(9) {
		servers = append(servers, Server{Workers: 4, Service: 40*time.Millisecond + i*2500*time.Microsecond})
	}
	servers = append(servers, Server{Workers: 4, Service: 500 * time.Millisecond})
	w := World{Clients: 10, Deadlines: []time.Duration{deadline}, From: from, Priorities: [][]Server{servers, servers}}
	w.Load = 0.6 * w.capacity() / 2
	w.Length = from + seconds(calls/w.Load)
	return filled(w)
}

// stock returns a client of gRPC-Go with the servers of all priorities in one list.
func stock(policy string) dialer {
	return func(w World, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
		r := manual.NewBuilderWithScheme("all")
		var state resolver.State
		for p, servers := range w.Priorities {
			for i := range servers {
				state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: addressOf(p, i)}}})
			}
		}
		r.InitialState(state)
		return grpc.NewClient("all:///", append(opts, grpc.WithResolvers(r), grpc.WithDefaultServiceConfig(fmt.Sprintf(`{"loadBalancingConfig": [{%q: {}}]}`, policy)))...)
	}
}

// alone returns a client of gRPC-Go with the servers of the first priority.
func alone(policy string) dialer {
	return func(w World, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
		w.Priorities = w.Priorities[:1]
		return stock(policy)(w, opts...)
	}
}

// tail is how long the calls of a world took, in order. A failed call takes its whole deadline.
type tail struct {
	took                    []time.Duration
	failed, slow, elsewhere int // slow: answered by the slow backend
}

func playTail(t *testing.T, w World, seed uint64, dial dialer) (of tail) {
	play(t, w, seed, dial, func(err error, took time.Duration, server net.Addr) {
		switch {
		case err != nil:
			of.failed++
			took = w.Deadlines[0]
		case server.String() == addressOf(0, 9):
			of.slow++
		case !strings.HasPrefix(server.String(), "10.0.0."):
			of.elsewhere++
		}
		of.took = append(of.took, took)
	})
	slices.Sort(of.took)
	return of
}

func (t tail) percentile(p float64) time.Duration {
	return t.took[min(len(t.took)-1, int(p/100*float64(len(t.took))))]
}

// Ejection works below a policy of grpc-go too: without it, least_request calls the slow backend
// until its queue is as long as the deadline.
func TestLeastRequestTail(t *testing.T) {
	w := tailWorld(time.Second, 5*time.Second, 2000)
	us, grpc := playTail(t, w, 1, through("least_request_experimental")), playTail(t, w, 1, alone("least_request_experimental"))
	t.Logf("p99 %v through us and %v alone; %d and %d of %d fail", us.percentile(99), grpc.percentile(99), us.failed, grpc.failed, len(us.took))
	if us.percentile(99) > grpc.percentile(99)/2 || us.failed > grpc.failed/2 {
		t.Error("through us, least_request is not clearly better than alone")
	}
}
