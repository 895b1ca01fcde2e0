package watch

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/serve"
)

func TestWatchTargets(t *testing.T) {
	b := newBackend(t)
	host, port, err := net.SplitHostPort(b.address)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "shop.yaml")
	text := fmt.Sprintf("endpoints:\n- locality: {region: us-east}\n  load_balancing_weight: 1\n  lb_endpoints:\n  - endpoint: {address: {socket_address: {address: %s, port_value: %s}}}\n", host, port)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := serve.Start(t.Context(), serve.Options{Paths: []string{file}, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	for target, want := range map[string]string{
		b.address:                     "p0 " + b.address,
		"dns:///" + b.address:         "p0 dns:///" + b.address,
		"passthrough:///" + b.address: "p0 passthrough:///" + b.address,
		"failover:///" + b.address + "?failoverTimeout=3s": "p0 " + b.address,
		"file://" + file: "p0 us-east",
		"eds://" + server.Addr().String() + "/shop":                                     "p0 us-east",
		"eds://" + server.Addr().String() + "/shop?cds=true":                            "p0 shop: us-east",
		"failover:///eds://" + server.Addr().String() + "/shop%3Fcds=true," + b.address: "p0 eds://",
	} {
		w := startWatch(t, Options{Target: target, Output: "lines", Dial: Dial{Options: []string{"ramp=9s"}}})
		w.await("Calls go to " + want)
		if err := w.end(); err != nil {
			t.Errorf("%s: the watch ended with %v", target, err)
		}
	}
}
