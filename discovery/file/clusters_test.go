package file

import (
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

func static(name, address string) string {
	return "- name: " + name + "\n  type: STATIC\n  load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: " + address + ", port_value: 1}}}}]}]}\n"
}

func aggregate(name, children string) string {
	return "- name: " + name + "\n  cluster_type:\n    name: envoy.clusters.aggregate\n    typed_config:\n" +
		"      '@type': type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig\n      clusters: [" + children + "]\n"
}

func clustersFile(list ...string) string { return "clusters:\n" + strings.Join(list, "") }

func watchCluster(t *testing.T, path, cluster string, opts ...given.Option) *fakeChannel {
	t.Helper()
	return watchFile(t, path+"?cluster="+cluster, opts...)
}

func TestAggregateCluster(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	write(t, path, clustersFile(aggregate("all", "b, more, a"), static("a", "10.0.0.1"), static("b", "10.0.0.2"), aggregate("more", "c, a"), static("c", "10.0.0.3")))
	c := watchCluster(t, path, "all")
	if got, want := c.next(t), `10.0.0.2:1["b/child0" "/"] 10.0.0.3:1["c/child0" "/"] 10.0.0.1:1["a/child0" "/"]`; got != want {
		t.Fatalf("state = %s, want %s", got, want)
	}
	replace(t, path, clustersFile(aggregate("all", "a, b"), static("a", "10.0.0.9"), static("b", "10.0.0.2")))
	for want := `10.0.0.9:1["a/child0" "/"] 10.0.0.2:1["b/child0" "/"]`; ; {
		if got := c.next(t); got == want {
			break
		}
	}
	replace(t, path, clustersFile(static("x", "10.0.0.7")))
	c = watchFile(t, path)
	if got, want := c.next(t), `10.0.0.7:1["x/child0" "/"]`; got != want {
		t.Errorf("state = %s, want %s", got, want)
	}
	replace(t, path, onePort(80))
	c.expect(t, 80)
}

// A mistake in a cluster must become the error of that cluster's priority, with the position in the
// file. The other clusters must stay in use.
func TestInvalidCluster(t *testing.T) {
	nestedClusters := []string{static("good", "10.0.0.1")}
	name := func(i int) string { return "c" + strings.Repeat("i", i) }
	for i := 1; i < 17; i++ {
		nestedClusters = append(nestedClusters, aggregate(name(i), name(i+1)+map[bool]string{true: ", good"}[i == 1]))
	}
	nestedClusters = append(nestedClusters, static(name(17), "10.0.0.2"))
	for about, test := range map[string]struct {
		cluster string
		list    []string
		want    string
	}{
		"itself":    {"all", []string{aggregate("all", "all, good"), static("good", "10.0.0.1")}, `:7:18: cluster "all" names itself: all -> all`},
		"loop":      {"all", []string{aggregate("all", "b, good"), aggregate("b", "all"), static("good", "10.0.0.1")}, `:13:18: cluster "all" names itself: all -> b -> all`},
		"missing":   {"all", []string{aggregate("all", "good, nowhere"), static("good", "10.0.0.1")}, `:7:24: cluster "nowhere" (named by all): the file has no such cluster, want one of "all", "good"`},
		"type":      {"all", []string{aggregate("all", "b, good"), "- {name: b, type: ORIGINAL_DST}\n", static("good", "10.0.0.1")}, `cluster "b" (named by all): PATH:8:19: type ORIGINAL_DST is not supported, want STATIC`},
		"policy":    {"all", []string{aggregate("all", "b, good"), "- {name: b, type: EDS, lb_policy: MAGLEV}\n", static("good", "10.0.0.1")}, `PATH:8:35: lb_policy MAGLEV is not supported`},
		"outliers":  {"all", []string{aggregate("all", "b, good"), static("b", "10.0.0.2") + "  outlier_detection: {interval: 1s, max_ejection_percent: 101}\n", static("good", "10.0.0.1")}, `PATH:11:59: max_ejection_percent is 101, want 0 to 100`},
		"no server": {"all", []string{aggregate("all", "b, good"), "- {name: b, type: EDS}\n", static("good", "10.0.0.1")}, `file: b: the target names no server, and neither does an xDS bootstrap`},
		"address":   {"all", []string{aggregate("all", "b, good"), static("b", "10.0.0.999"), static("good", "10.0.0.1")}, `PATH:10:`},
		"depth":     {name(1), nestedClusters, `cluster "` + name(17) + `" is at depth 17, want at most 16: c`},
	} {
		t.Run(about, func(t *testing.T) {
			t.Setenv("GRPC_XDS_BOOTSTRAP", "")
			path := newPath(t)
			writeOld(t, path, clustersFile(test.list...))
			c := watchCluster(t, path, test.cluster)
			if got := c.next(t); got != `10.0.0.1:1["good/child0" "/"]` {
				t.Errorf("state = %s, want the good cluster alone", got)
			}
			logged.Wait(t, testTimeout, strings.ReplaceAll(test.want, "PATH", path))
		})
	}
}

func TestInvalidClusterList(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		clustersFile(static("a", "10.0.0.1"), static("b", "10.0.0.2")): `holds 2 clusters, "a", "b": want one of them in the target, as in ?cluster=a`,
		"clusters: []\n":                       ":1:1: the list of clusters is empty",
		"clusters: {}\n":                       ":1:11: want a list, got a mapping",
		"clusters:\n- {name: a, typ: EDS}\n":   `:2:13: unknown field "typ", did you mean type?`,
		"clusters:\n- {name: a, type: EDSS}\n": ":2:19: type: want one of STATIC, ",
		"clusters:\n- {name: a, type: EDS}\n- {name: a, type: EDS}\n":             `:3:10: cluster "a" is already given on line 2`,
		"clusters:\n- {name: a, type: EDS}\nendpoints: []\n":                      `:3:1: "endpoints" is given together with clusters`,
		"clusters:\n- name: a\n  cluster_type: {name: x, typed_config: {a: 1}}\n": `:3:41: want a message with its type, such as {"@type": type.googleapis.com/envoy`,
	} {
		path := newPath(t)
		writeOld(t, path, content)
		if got := watchFile(t, path).nextError(t); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", content, got, want)
		}
	}
	path := newPath(t)
	write(t, path, "cluster_name: x\n"+onePort(1))
	if got, want := watchCluster(t, path, "y").nextError(t), `cluster "y": the file has no such cluster, want one of "x"`; !strings.Contains(got, want) {
		t.Errorf("%s, want %q", got, want)
	}
	if got := watchCluster(t, path, "x").next(t); got != stateOf(1) {
		t.Errorf("state = %s, want %s", got, stateOf(1))
	}
}

func TestClusterNotes(t *testing.T) {
	path := newPath(t)
	write(t, path, clustersFile(static("a", "10.0.0.1")+"  circuit_breakers: {}\n  connect_timeout: 1s\n  outlier_detection: {interval: 1s, consecutive_5xx: 3}\n"))
	c := watchFile(t, path)
	c.next(t)
	logged.Wait(t, testTimeout, path+":5:3: circuit_breakers has no effect", path+":7:54: consecutive_5xx has no effect")
}

// The outlier detection of a cluster must apply to the cluster's priorities. An edit of only the
// outlier detection must also reach the policies.
func TestClusterOutlierDetection(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	file := func(seconds string) string {
		return clustersFile(aggregate("all", "b, a"), static("a", "10.0.0.1"), static("b", "10.0.0.2")+"  outlier_detection: {interval: "+seconds+"s}\n")
	}
	defaultConfig := `"a/child0":{"config":[{"understudy_outlier_detection":{"interval":"10s","baseEjectionTime":"30s","maxEjectionTime":"300s","maxEjectionPercent":10,`
	write(t, path, file("1"))
	c := watchCluster(t, path, "all")
	for _, seconds := range []string{"1", "2"} {
		write(t, path, file(seconds))
		c.awaitConfig(t, defaultConfig, `"b/child0":{"config":[{"understudy_outlier_detection":{"interval":"`+seconds+`s"`)
	}
}

func TestClusterNamesWithSlashes(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	write(t, path, clustersFile(aggregate("all", "shop.v2, prod/shop"), static("prod/shop", "10.0.0.1"), static("shop.v2", "10.0.0.2")))
	c := watchCluster(t, path, "all")
	select {
	case s := <-c.states:
		want := map[string]string{"shop.v2/child0": "shop.v2", "prod/shop/child0": "prod/shop"}
		if got := stateattr.ChannelOf(s).Services; !maps.Equal(got, want) {
			t.Errorf("services are %q, want %q", got, want)
		}
	case <-time.After(testTimeout):
		t.Fatal("no state was sent")
	}
}

type fakeDNS struct {
	mu      sync.Mutex
	answers map[string][]string
	conns   map[string]resolver.ClientConn
	builds  map[string]int
}

func (n *fakeDNS) buildCount(name string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.builds[name]
}

func (*fakeDNS) Scheme() string { return "dns" }

func (n *fakeDNS) Build(target resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	n.mu.Lock()
	n.builds[target.Endpoint()]++
	n.conns[target.Endpoint()] = cc
	n.mu.Unlock()
	n.update(target.Endpoint())
	return n, nil
}

func (*fakeDNS) ResolveNow(resolver.ResolveNowOptions) {}
func (*fakeDNS) Close()                                {}

func (n *fakeDNS) update(name string) {
	n.mu.Lock()
	state := resolver.State{}
	for _, a := range n.answers[name] {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a}}})
	}
	cc := n.conns[name]
	n.mu.Unlock()
	_ = cc.UpdateState(state)
}

func dnsCluster(kind, name, assignment string) string {
	return "- name: " + name + "\n  type: " + kind + "\n  load_assignment: {endpoints: " + assignment + "}\n"
}

func TestDNSClusters(t *testing.T) {
	t.Parallel()
	const addressPrefix = "endpoint: {address: {socket_address: {address: "
	dns := &fakeDNS{
		answers: map[string][]string{"backup.example.com:443": {"10.1.0.1:443", "10.1.0.2:443"}, "east.example.com:1": {"10.2.0.1:1", "10.2.0.2:1"}, "west.example.com:1": {"10.2.0.2:1", "10.3.0.1:1"}},
		conns:   make(map[string]resolver.ClientConn),
		builds:  make(map[string]int),
	}
	path := newPath(t)
	content := clustersFile(aggregate("all", "strict, logical"),
		dnsCluster("STRICT_DNS", "strict", "["+
			"{locality: {region: east}, load_balancing_weight: 1, lb_endpoints: [{"+addressPrefix+"east.example.com, port_value: 1}}}}, {"+addressPrefix+"10.2.0.9, port_value: 1}}}}]},"+
			"{locality: {region: west}, priority: 1, load_balancing_weight: 1, lb_endpoints: [{"+addressPrefix+"west.example.com, port_value: 1}}}}]}]"),
		dnsCluster("LOGICAL_DNS", "logical", "[{lb_endpoints: [{"+addressPrefix+"backup.example.com, port_value: 443}}}}]}]"))
	write(t, path, content)
	c := watchCluster(t, path, "all", given.Sources(failover.WithResolvers(dns)))
	want := `10.2.0.1:1["strict/child0" "east"] 10.2.0.2:1["strict/child0" "east"] 10.2.0.9:1["strict/child0" "east"] 10.3.0.1:1["strict/child1" "west"]` +
		` 10.1.0.1:443["logical" "/"] 10.1.0.2:443["logical" "/"]`
	if got := c.next(t); got != want {
		t.Fatalf("state = %s\nwant %s", got, want)
	}
	dns.mu.Lock()
	dns.answers["east.example.com:1"] = []string{"10.2.0.3:1"}
	dns.mu.Unlock()
	dns.update("east.example.com:1")
	if got := c.next(t); !strings.HasPrefix(got, `10.2.0.3:1["strict/child0" "east"] 10.2.0.9:1`) || !strings.Contains(got, `10.2.0.2:1["strict/child1" "west"]`) {
		t.Errorf("state = %s, want the new address, and the one that is free now", got)
	}
	builds := dns.buildCount("backup.example.com:443")
	replace(t, path, strings.Replace(content, "[strict, logical]", "[logical, strict]", 1))
	for got := c.next(t); !strings.HasPrefix(got, `10.1.0.1:443["logical" "/"]`); {
		got = c.next(t)
	}
	if got := dns.buildCount("backup.example.com:443"); got != builds {
		t.Errorf("%d resolvers were built for an edit of another cluster, want none", got-builds)
	}
}
