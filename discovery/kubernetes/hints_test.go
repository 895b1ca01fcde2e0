package kubernetes_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
	_ "github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/discovery/kubernetes"
	"github.com/understudy-lb/understudy/internal/testing/kubetest"
	"github.com/understudy-lb/understudy/internal/testing/testlog"
)

var logged = testlog.CaptureWarnings()

// By default, a client that knows its location must follow the hints of endpoints. For other
// clients, this default must have no effect, and nothing must be logged. The option prefer must
// replace the default.
func TestHintsArePreferredByDefault(t *testing.T) {
	a, b := backend(t), backend(t)
	for _, test := range []struct {
		target string
		zone   string
		prefer string
		want   []string
	}{
		{"kubernetes:///web.shop", "", "", []string{a, b}},
		{"kubernetes:///web.shop", "b", "", []string{b}},
		{"kubernetes:///web.shop?zone=a", "b", "", []string{a}},
		{"kubernetes:///web.shop?node=n-b", "", "", []string{b}},
		{"kubernetes:///web.shop?prefer=hints", "b", "", []string{b}},
		{"kubernetes:///web.shop?prefer=none", "b", "", []string{a, b}},
		{"kubernetes:///web.shop?prefer=zone", "b", "none", []string{a}},
		{"kubernetes:///web.shop", "b", "none", []string{a, b}},
		{"kubernetes:///web.shop", "b", "zone", []string{a}},
		{"kubernetes:///web.shop", "c", "", []string{a, b}},
		{"failover:///kubernetes:///web.shop,127.0.0.1:1", "b", "", []string{b}},
		{"failover:///kubernetes:///web.shop,127.0.0.1:1?prefer=none", "b", "", []string{a, b}},
	} {
		t.Run(fmt.Sprintf("%s in zone %q with %q", test.target, test.zone, test.prefer), func(t *testing.T) {
			t.Setenv("UNDERSTUDY_ZONE", test.zone)
			before := logged.Count("has no effect")
			// The hints of each endpoint contain the zone of the other endpoint. This distinguishes
			// a client that follows hints from a client that prefers its own zone.
			cc := dial(t, test.target, test.prefer, hintedSlice(a, "b", "a"), hintedSlice(b, "a", "b"))
			got := make(map[string]bool)
			for n := 0; n < 200 || len(got) < len(test.want) && n < 10_000; n++ {
				var p peer.Peer
				if err := call(t, cc, grpc.Peer(&p)); err != nil {
					t.Fatal(err)
				}
				got[p.Addr.String()] = true
			}
			want := slices.Sorted(slices.Values(test.want))
			if calls := slices.Sorted(maps.Keys(got)); !slices.Equal(calls, want) {
				t.Errorf("calls go to %v, want %v", calls, want)
			}
			if n := logged.Count("has no effect") - before; n != 0 {
				t.Errorf("the log has %d warnings with \"has no effect\"", n)
			}
		})
	}
}

func hintedSlice(address, zone, forZone string) slice {
	return slice{address, fmt.Sprintf(`,"zone":%q,"hints":{"forZones":[{"name":%q}],"forNodes":[{"name":"n-%[2]s"}]}`, zone, forZone)}
}

// If a cluster has no hints, a warning must be logged only if the program's options require hints.
func TestClusterWithoutHints(t *testing.T) {
	a := backend(t)
	for prefer, want := range map[string]int{"": 0, "hints": 1} {
		before := logged.Count("has no effect")
		if err := call(t, dial(t, "kubernetes:///web.shop?zone=b", prefer, slice{a, ""})); err != nil {
			t.Error(err)
		}
		if n := logged.Count("has no effect") - before; n != want {
			t.Errorf("with prefer=%q the log has %d warnings with \"has no effect\", want %d", prefer, n, want)
		}
	}
}

type slice struct{ address, fields string } // fields is JSON that follows the endpoint's addresses

func dial(t *testing.T, target, prefer string, slices ...slice) *grpc.ClientConn {
	t.Helper()
	api := kubetest.Start(t)
	for _, s := range slices {
		host, port, _ := net.SplitHostPort(s.address)
		n, _ := strconv.Atoi(port)
		api.Set("web", "web-"+port, n, fmt.Sprintf(`{"addresses":[%q]%s}`, host, s.fields))
	}
	cc, err := understudy.NewClient(target,
		understudy.Options{Prefer: prefer, Sources: []discovery.SourceOption{kubernetes.WithTransport(api.URL, &http.Transport{})}},
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	return cc
}

func backend(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	healthpb.RegisterHealthServer(s, health.NewServer())
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

func call(t *testing.T, cc *grpc.ClientConn, options ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{}, append(options, grpc.WaitForReady(true))...)
	return err
}
