package interop

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/understudy-lb/understudy/internal/testing/given"
)

// static returns a cluster of type STATIC with one endpoint, in YAML.
func static(name, address string) string {
	return fmt.Sprintf("- {name: %s, type: STATIC, load_assignment: {endpoints: [{lb_endpoints: [{%s}]}]}}\n", name, endpointAt(address))
}

// logical returns a cluster of type LOGICAL_DNS, in YAML.
func logical(name, address string) string {
	return fmt.Sprintf("- {name: %s, type: LOGICAL_DNS, load_assignment: {endpoints: [{lb_endpoints: [{%s}]}]}}\n", name, endpointAt(address))
}

func endpointAt(address string) string {
	host, port, _ := net.SplitHostPort(address)
	return fmt.Sprintf("endpoint: {address: {socket_address: {address: %s, port_value: %s}}}", host, port)
}

// aggregate returns an aggregate cluster, in YAML.
func aggregate(name string, children ...string) string {
	return fmt.Sprintf(`- name: %s
  cluster_type:
    name: envoy.clusters.aggregate
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig
      clusters: [%s]
`, name, strings.Join(children, ", "))
}

func writeClusters(t *testing.T, path string, list ...string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte("clusters:\n"+strings.Join(list, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// understudy serve sends an aggregate cluster. With gRPC's own xDS client and with ours, calls must
// go to the first cluster in the aggregate that has a reachable endpoint.
func TestAggregateAgainstServe(t *testing.T) {
	t.Parallel()
	withBoth(t, "?cds=true", func(t *testing.T, open func(address string) *grpc.ClientConn) {
		near, far, backup := backend(t), backend(t), backend(t)
		_, port, _ := net.SplitHostPort(backup)
		path := filepath.Join(t.TempDir(), "shop.yaml")
		last := []string{aggregate("rest", "far", "backup"), logical("backup", "localhost:"+port)}
		shop := aggregate("shop", "near", "rest")
		writeClusters(t, path, append(last, shop, static("near", near), static("far", far))...)
		p := serve(t, "127.0.0.1:0", path)
		conn := open(p.address)
		callUntil(t, conn, near)
		if got := callN(t, conn, 20); got[near] != 20 {
			t.Errorf("20 calls were answered by %v, want the first cluster", got)
		}
		writeClusters(t, path, append(last, shop, static("near", given.Address(t)), static("far", far))...)
		callUntil(t, conn, far)
		writeClusters(t, path, append(last, shop, static("near", given.Address(t)), static("far", given.Address(t)))...)
		callUntil(t, conn, net.JoinHostPort("127.0.0.1", port)) // the endpoint of the third cluster
		writeClusters(t, path, append(last, shop, static("near", near), static("far", far))...)
		callUntil(t, conn, near)
		writeClusters(t, path, append(last, aggregate("shop", "rest", "near"), static("near", near), static("far", far))...)
		callUntil(t, conn, far)
	})
}
