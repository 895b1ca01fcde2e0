package e2e

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
)

func zonesFile(t *testing.T, zones map[string][]*server) string {
	t.Helper()
	text := "cluster_name: shop\nendpoints:\n"
	for _, zone := range []string{"a", "b", "c"} {
		if len(zones[zone]) == 0 {
			continue
		}
		text += fmt.Sprintf("- locality: {zone: %s}\n  load_balancing_weight: 1\n  lb_endpoints:\n", zone)
		for _, s := range zones[zone] {
			host, port, _ := net.SplitHostPort(s.address)
			text += fmt.Sprintf("  - endpoint: {address: {socket_address: {address: %s, port_value: %s}}}\n", host, port)
		}
	}
	path := filepath.Join(t.TempDir(), "shop.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// callOnce makes a call with its own deadline. On a slow machine, thousands of calls may together
// take longer than eventTimeout.
func callOnce(t *testing.T, cc *grpc.ClientConn) (answer, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	return who(ctx, cc)
}

// callShares waits until each backend has answered once. It then makes the given number of calls,
// and returns the share of each backend.
func callShares(t *testing.T, cc *grpc.ClientConn, calls int, all ...string) map[string]float64 {
	t.Helper()
	for _, name := range all {
		awaitName(timeoutContext(t, eventTimeout), t, cc, name)
	}
	shares := make(map[string]float64)
	for range calls {
		got, err := callOnce(t, cc)
		if err != nil {
			t.Fatal(err)
		}
		shares[got.name] += 1 / float64(calls)
	}
	return shares
}

// Three zones have 3, 2 and 1 backends, and an equal number of clients each. Each backend gets a
// sixth of all calls. When a zone loses a backend, some calls of its clients go to other zones.
func TestBalanceOnRealSockets(t *testing.T) {
	t.Parallel()
	zones, load := make(map[string][]*server), make(map[string]float64)
	for zone, n := range map[string]int{"a": 3, "b": 2, "c": 1} {
		for i := range n {
			zones[zone] = append(zones[zone], startServer(t, fmt.Sprint(zone, i), nil))
		}
	}
	backup := zonesFile(t, map[string][]*server{"b": {startServer(t, "backup", nil)}})
	target := "failover:///file://" + zonesFile(t, zones) + ",file://" + backup + "?prefer=balance&zone="
	const calls = 3000
	var channelInB *grpc.ClientConn
	for zone, names := range map[string]string{"a": "a0 a1 a2", "b": "b0 b1", "c": "c0 a0 a1 a2"} {
		cc := newClient(t, target+zone)
		if zone == "b" {
			channelInB = cc
		}
		for name, share := range callShares(t, cc, calls, strings.Fields(names)...) {
			load[name] += share / 3
		}
	}
	for _, name := range strings.Fields("a0 a1 a2 b0 b1 c0") {
		if math.Abs(load[name]-1./6) > 0.001 {
			t.Errorf("the shares of the backends are %v, want a sixth each", load)
			break
		}
	}
	// The zones a, b and c now have 3/5, 1/5 and 1/5 of the capacity. Clients in b therefore send
	// 3/5 of their calls to b, and the rest to a.
	wantShares := func(what string, want map[string]float64) {
		t.Helper()
		var names []string
		for name := range want {
			names = append(names, name)
		}
		for start := time.Now(); ; {
			isLast := time.Since(start) > eventTimeout
			got := callShares(t, channelInB, calls, names...)
			if approximatelyEqual(got, want, 0.001) {
				return
			}
			if isLast {
				t.Fatalf("%s: the shares of zone b's calls are %v, want %v", what, got, want)
			}
		}
	}
	zones["b"][0].grpc.Stop()
	wantShares("half of the zone is gone", map[string]float64{"b1": 0.6, "a0": 0.4 / 3, "a1": 0.4 / 3, "a2": 0.4 / 3})
	startServerOn(t, "b0", zones["b"][0].address, nil)
	wantShares("it is back", map[string]float64{"b0": 0.5, "b1": 0.5})
}

// When the client's zone is stopped, no call fails, and no call goes to the next entry of the
// target.
func TestBalanceWhenHomeZoneStops(t *testing.T) {
	t.Parallel()
	zones := make(map[string][]*server)
	for zone, n := range map[string]int{"a": 3, "b": 2, "c": 1} {
		for i := range n {
			zones[zone] = append(zones[zone], startServer(t, fmt.Sprint(zone, i), nil))
		}
	}
	backup := startServer(t, "backup", nil)
	cc := newClient(t, "failover:///file://"+zonesFile(t, zones)+",file://"+zonesFile(t, map[string][]*server{"b": {backup}})+"?prefer=balance&zone=b")
	callShares(t, cc, 100, "b0", "b1")
	for _, s := range zones["b"] {
		s.grpc.GracefulStop() // calls in flight succeed
	}
	seen := make(map[string]int)
	for seen["a0"] < 1000 {
		got, err := callOnce(t, cc)
		if err != nil || got.name == "backup" {
			t.Fatalf("after the calls %v: %+v, %v; want no error and no call to the backup", seen, got, err)
		}
		seen[got.name]++
	}
	if c := seen["c0"]; c > 0 || seen["a1"] < 900 || seen["a2"] < 900 {
		t.Errorf("without the zone its calls go to %v, want only a, which alone has residual capacity", seen)
	}
}

// approximatelyEqual reports whether got and want have the same keys, and no share differs by more
// than tolerance.
func approximatelyEqual(got, want map[string]float64, tolerance float64) bool {
	for name := range got {
		if _, ok := want[name]; !ok {
			return false
		}
	}
	for name, share := range want {
		if math.Abs(got[name]-share) > tolerance {
			return false
		}
	}
	return true
}
