package interop

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/policy/weightedroundrobin"
)

// twoLocalities writes a file with two localities, and returns its path. The locality of a and b
// has weight 3, and the locality of c has weight 1. In the first locality, a has weight 2 and b
// weight 1.
func twoLocalities(t *testing.T, a, b, c string) string {
	t.Helper()
	text := `endpoints:
- locality: {zone: z1}
  loadBalancingWeight: 3
  lbEndpoints:
  - endpoint: {address: {socketAddress: {address: 127.0.0.1, portValue: A}}}
    loadBalancingWeight: 2
  - endpoint: {address: {socketAddress: {address: 127.0.0.1, portValue: B}}}
    loadBalancingWeight: 1
- locality: {zone: z2}
  loadBalancingWeight: 1
  lbEndpoints:
  - endpoint: {address: {socketAddress: {address: 127.0.0.1, portValue: C}}}
`
	text = strings.NewReplacer("A}", port(a)+"}", "B}", port(b)+"}", "C}", port(c)+"}").Replace(text)
	path := filepath.Join(t.TempDir(), "payments.yaml")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func port(address string) string { return address[strings.LastIndex(address, ":")+1:] }

// expectShares fails the test unless each backend has its share of the calls. The tolerance must be
// larger for clients that choose localities at random.
func expectShares(t *testing.T, counts map[string]int, tolerance float64, want map[string]float64) {
	t.Helper()
	total := 0
	for _, n := range counts {
		total += n
	}
	for backend, share := range want {
		if got := float64(counts[backend]) / float64(total); math.Abs(got-share) > tolerance {
			t.Errorf("%s handled %.4f of the calls, want %.4f ± %.4f: %v", backend, got, share, tolerance, counts)
		}
	}
}

// A gRPC-Go program imports only our weighted_round_robin, and gets its endpoints from "understudy
// serve". Each endpoint must get its share of the calls.
func TestServeSendsWeightsToStockClient(t *testing.T) {
	t.Parallel()
	a, b, c := backend(t), backend(t), backend(t)
	p := serve(t, "127.0.0.1:0", twoLocalities(t, a, b, c))
	conn := stockChannel(t, p.address, "payments")
	for _, one := range []string{a, b, c} {
		callUntil(t, conn, one)
	}
	expectShares(t, callN(t, conn, 2000), 0.001, map[string]float64{a: 0.5, b: 0.25, c: 0.25})
}

// The client does not have our policy, or serve runs with --policy round_robin. Each locality must
// get its share of the calls, and the endpoints of a locality must get equal shares.
func TestServeToClientsWithoutOurPolicy(t *testing.T) {
	t.Parallel()
	a, b, c := backend(t), backend(t), backend(t)
	path := twoLocalities(t, a, b, c)
	want := map[string]float64{a: 0.375, b: 0.375, c: 0.25}
	for _, policy := range []string{weightedroundrobin.Name, "round_robin"} {
		p := serve(t, "127.0.0.1:0", path, "--policy", policy)
		client := newStockClient(t, p.address, "xds:///payments")
		for _, one := range []string{a, b, c} {
			client.callUntil(t, one)
		}
		expectShares(t, client.callN(t, 4000), 0.05, want)
	}
	p := serve(t, "127.0.0.1:0", path, "--policy", "round_robin")
	conn := stockChannel(t, p.address, "payments")
	for _, one := range []string{a, b, c} {
		callUntil(t, conn, one)
	}
	expectShares(t, callN(t, conn, 4000), 0.05, want)
}
