package overload

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/balancer/roundrobin"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

var goodputFile = flag.String("goodput", "", "record the goodput of our client and of gRPC-Go's in this file")

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

// TestGoodput records how many calls a second are answered at each load, by two priorities that can
// do 200 each, as make goodput draws it. Without -goodput, it only checks that the clients work.
func TestGoodput(t *testing.T) {
	loads := []float64{20}
	if *goodputFile != "" {
		loads = nil
		for load := 50.; load <= 600; load += 25 {
			loads = append(loads, load)
		}
	}
	var b strings.Builder
	b.WriteString("load,Recommended(),round_robin,pick_first\n")
	for _, load := range loads {
		fmt.Fprint(&b, load)
		for _, dial := range []dialer{recommended, stock("round_robin"), stock("pick_first")} {
			w := filled(World{Load: load, From: 20 * time.Second, Length: 60 * time.Second})
			lost := playLibrary(t, w, dial)
			if load < 200 && lost > 0 {
				t.Errorf("at %v/s, %.1f %% of the calls are lost", load, lost)
			}
			fmt.Fprintf(&b, ",%.1f", load*(1-lost/100))
		}
		b.WriteString("\n")
	}
	if *goodputFile == "" {
		return
	}
	if err := os.WriteFile(*goodputFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
