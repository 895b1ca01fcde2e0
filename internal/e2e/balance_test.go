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

// zonesFile writes a file of backends, by zone, and returns its path.
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

// counted returns which part of so many calls each backend answers, once each of these has.
func counted(ctx context.Context, t *testing.T, cc *grpc.ClientConn, calls int, all ...string) map[string]float64 {
	t.Helper()
	for _, name := range all {
		awaitName(ctx, t, cc, name)
	}
	parts := make(map[string]float64)
	for range calls {
		got, err := who(ctx, cc)
		if err != nil {
			t.Fatal(err)
		}
		parts[got.name] += 1 / float64(calls)
	}
	return parts
}

// Zones of 3, 2 and 1 backends, with as many callers each: each backend has a sixth of all calls. The
// home zone dies, and its calls go to the other zones, not to the next part of the list.
func TestBalanceOnRealSockets(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	zones, load := make(map[string][]*server), make(map[string]float64)
	for zone, n := range map[string]int{"a": 3, "b": 2, "c": 1} {
		for i := range n {
			zones[zone] = append(zones[zone], startServer(t, fmt.Sprint(zone, i), nil))
		}
	}
	backup := zonesFile(t, map[string][]*server{"b": {startServer(t, "backup", nil)}})
	target := "failover:///file://" + zonesFile(t, zones) + ",file://" + backup + "?prefer=balance&zone="
	const calls = 3000
	var inB *grpc.ClientConn
	for zone, names := range map[string]string{"a": "a0 a1 a2", "b": "b0 b1", "c": "c0 a0 a1 a2"} {
		cc := newClient(t, target+zone)
		if zone == "b" {
			inB = cc
		}
		for name, part := range counted(ctx, t, cc, calls, strings.Fields(names)...) {
			load[name] += part / 3
		}
	}
	for _, name := range strings.Fields("a0 a1 a2 b0 b1 c0") {
		if math.Abs(load[name]-1./6) > 0.001 {
			t.Errorf("the backends have these parts of the calls: %v, want a sixth each", load)
			break
		}
	}
	for _, s := range zones["b"] {
		s.grpc.Stop()
	}
	for name, part := range counted(ctx, t, inB, calls, "a0", "a1", "a2", "c0") {
		if math.Abs(part-1./4) > 0.001 {
			t.Errorf("with its zone gone %s has %v of the calls of zone b, want a quarter", name, part)
		}
	}
}
