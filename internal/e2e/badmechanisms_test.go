package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// Unusable clusters do not affect other clusters. The unusable clusters are a cycle, a cluster of
// an unsupported type, clusters of a management server that does not respond, and clusters whose
// names do not exist.
func TestFailingClustersDoNotAffectOthers(t *testing.T) {
	t.Parallel()
	good := startServer(t, "good", nil)
	host, port, _ := strings.Cut(good.address, ":")
	silent := startManager(t, (*adstest.Stream).Drain)
	loop := startManager(t, adstest.NewCatalogue(adstest.Aggregate("shop", "shop")).Serve)
	path := filepath.Join(t.TempDir(), "clusters.yaml")
	address := func(host, port string) string {
		return "{endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: " + host + ", port_value: " + port + "}}}}]}]}"
	}
	content := `clusters:
- {name: original, type: ORIGINAL_DST}
- {name: logical, type: LOGICAL_DNS, load_assignment: ` + address("gone.invalid", "1") + `}
- {name: strict, type: STRICT_DNS, load_assignment: ` + address("gone.invalid", "2") + `}
- {name: good, type: STATIC, load_assignment: ` + address(host, port) + `}
- name: all
  cluster_type:
    name: envoy.clusters.aggregate
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig
      clusters: [all, original, nowhere, logical, strict, good]
`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	file := "file://" + path + "%3Fcluster=all"
	cc := newClient(t, "failover:///eds://"+silent+"/shop%3Fcds=true,eds://"+loop+"/shop%3Fcds=true,"+file+"?failoverTimeout=2s")
	awaitName(timeoutContext(t, eventTimeout), t, cc, "good")
	for _, want := range [][]string{
		{"eds://" + silent + "/shop", `no cluster "shop"`, "the server has no such resource"},
		{"eds://" + loop + "/shop", `cluster "shop" names itself: shop -> shop`},
		{path, `cluster "all" names itself: all -> all`},
		{path, "/original: ", "type ORIGINAL_DST is not supported"},
		{path, "/nowhere: ", "the file has no such cluster"},
		{path, "/logical: "},
		{path, "/strict: "},
	} {
		logged.Wait(t, eventTimeout, want...)
	}
}
