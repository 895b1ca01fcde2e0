//go:build grpcjs

package interop

import (
	"os/exec"
	"path/filepath"
	"testing"
)

func newNodeClient(t *testing.T, address, target string) *lineClient {
	t.Helper()
	cmd := exec.Command("node", "client.js", target)
	cmd.Dir = "grpcjs"
	return newLineClient(t, address, cmd)
}

func TestNodeClientAgainstServe(t *testing.T) {
	a, b := backend(t), backend(t)
	path := filepath.Join(t.TempDir(), "payments.yaml")
	write(t, path, fileEndpoint{a, 0})
	p := serve(t, "127.0.0.1:0", path)
	client := newNodeClient(t, p.address, "xds:///payments")
	if got := client.callN(t, 10); got[a] != 10 {
		t.Errorf("10 calls were answered by %v, want %s", got, a)
	}
	write(t, path, fileEndpoint{b, 0})
	client.callUntil(t, b)
}

// The same disturbances as in TestDisturbancesLoseNoCall must not make a call of a Node.js client
// fail. They do not remove listeners, because this client does not recover from that.
func TestNodeClientLosesNoCall(t *testing.T) {
	d := newDisturbedServer(t)
	steady, probe := newNodeClient(t, d.server.address, "xds:///payments"), newNodeClient(t, d.server.address, "xds:///payments")
	stop := steady.traffic(t)
	d.disturb(t, func() { probe.callN(t, 200) }, func(b string) { probe.callUntil(t, b) })
	t.Logf("none lost of %d calls", stop())
}

// The cluster lists our policy first, which gRPC for Node.js does not have. It must use the next
// policy in the list.
func TestNodeClientWithoutOurPolicy(t *testing.T) {
	a, b, c := backend(t), backend(t), backend(t)
	p := serve(t, "127.0.0.1:0", twoLocalities(t, a, b, c))
	client := newNodeClient(t, p.address, "xds:///payments")
	for _, one := range []string{a, b, c} {
		client.callUntil(t, one)
	}
	expectShares(t, client.callN(t, 4000), 0.05, map[string]float64{a: 0.375, b: 0.375, c: 0.25})
}
