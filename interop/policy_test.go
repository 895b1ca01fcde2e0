package interop

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/weightedroundrobin"
)

// twoLocalities writes a file with two localities, of weights 3 and 1. The first one has two
// endpoints, of weights 2 and 1.
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
	try(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func port(address string) string { return address[strings.LastIndex(address, ":")+1:] }

// shares fails the test unless each backend has its share of the calls. The tolerance is for
// clients that choose localities at random.
func shares(t *testing.T, counts map[string]int, tolerance float64, want map[string]float64) {
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

// A gRPC-Go program imports only weighted_round_robin from this project. Each endpoint of a file
// that serve serves gets its share.
func TestServeGivesWeightsToStockTrees(t *testing.T) {
	a, b, c := backend(t), backend(t), backend(t)
	p := serve(t, "127.0.0.1:0", twoLocalities(t, a, b, c))
	conn := stockChannel(t, p.address, "payments")
	for _, one := range []string{a, b, c} {
		until(t, conn, one)
	}
	shares(t, answered(t, conn, 2000), 0.001, map[string]float64{a: 0.5, b: 0.25, c: 0.25})
}

// If the program does not import the policy, or serve has --policy round_robin, each locality still
// gets its share. Its endpoints then get equal shares.
func TestServeToClientsWithoutThePolicy(t *testing.T) {
	a, b, c := backend(t), backend(t), backend(t)
	path := twoLocalities(t, a, b, c)
	want := map[string]float64{a: 0.375, b: 0.375, c: 0.25}
	for _, policy := range []string{weightedroundrobin.Name, "round_robin"} {
		p := serve(t, "127.0.0.1:0", path, "--policy", policy)
		client := newStockClient(t, p.address, "xds:///payments")
		for _, one := range []string{a, b, c} {
			client.until(t, one)
		}
		shares(t, client.answered(t, 4000), 0.05, want)
	}
	p := serve(t, "127.0.0.1:0", path, "--policy", "round_robin")
	conn := stockChannel(t, p.address, "payments")
	for _, one := range []string{a, b, c} {
		until(t, conn, one)
	}
	shares(t, answered(t, conn, 4000), 0.05, want)
}
