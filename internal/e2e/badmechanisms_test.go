package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/dnstest"
)

// A DNS name that cannot be looked up does not affect the other entries of the target. If a
// response is truncated, the query is repeated over TCP.
func TestFailingNamesDoNotAffectOthers(t *testing.T) {
	t.Parallel()
	good := startServer(t, "good", nil)
	port := good.address[strings.LastIndex(good.address, ":")+1:]
	dns := startDNS(t)
	for _, kind := range []string{"A", "AAAA"} {
		dns.SetAnswer("broken.test", kind, dnstest.Answer{Code: dnsmessage.RCodeServerFailure})
		dns.SetAnswer("refused.test", kind, dnstest.Answer{Code: dnsmessage.RCodeRefused})
		dns.SetAnswer("silent.test", kind, dnstest.Answer{Silent: true})
		dns.Set("loop.test", kind, "CNAME other.test.")
		dns.Set("other.test", kind, "CNAME loop.test.")
	}
	var addresses []string
	for i := range 1500 {
		addresses = append(addresses, fmt.Sprintf("127.%d.%d.1", 1+i/250, i%250))
	}
	dns.Set("many.test", "A", addresses...)
	dns.SetAnswer("cut.test", "A", dnstest.Answer{Records: []string{"127.0.0.1"}, Truncated: true})
	wantErrors := map[string]string{
		"gone": "its resolver returned no addresses", "broken": "server misbehaving", "refused": "",
		"silent": "i/o timeout", "loop": "",
	}
	var entries []string
	for name := range wantErrors {
		entries = append(entries, "dns://"+dns.Address()+"/"+name+".test.:1")
	}
	entries = append(entries, "dns://"+dns.Address()+"/cut.test:"+port)
	cc := newClient(t, "failover:///"+strings.Join(entries, ",")+"?failoverTimeout=2s")
	awaitName(timeoutContext(t, eventTimeout), t, cc, "good")
	for name, want := range wantErrors {
		logged.Wait(t, eventTimeout, "failover: dns://"+dns.Address()+"/"+name+".test.:1: ", want)
	}
	cc = newClient(t, "failover:///dns://"+dns.Address()+"/many.test:1,dns://"+dns.Address()+"/cut.test:"+port)
	awaitName(timeoutContext(t, eventTimeout), t, cc, "good")
	logged.Wait(t, eventTimeout, "many.test:1", "1501 endpoints in 2 priorities")
}

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
