package serve

import (
	"fmt"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/kubeconfig"
	"github.com/understudy-lb/understudy/internal/testing/kubetest"
)

func endpointJSON(host int, zone, conditions string) string {
	return fmt.Sprintf(`{"addresses":["10.0.0.%[1]d"],"zone":%[2]q,"nodeName":"n%[1]d","conditions":{%[3]s},"hints":{"forZones":[{"name":%[2]q}]}}`, host, zone, conditions)
}

const terminating = `"ready":false,"serving":true,"terminating":true`

func kubernetesOptions(t *testing.T, api *kubetest.Server) Options {
	return Options{From: []string{"web=kubernetes:///web.shop:grpc"}, Kubeconfig: kubeconfig.Options{Path: api.Kubeconfig(t)}}
}

func servedEndpoints(t *testing.T, s *Server) string {
	t.Helper()
	var c endpointv3.ClusterLoadAssignment
	must(t, fetch(t, s, endpointType, "web").GetResources()[0].UnmarshalTo(&c))
	var lines []string
	for _, l := range c.GetEndpoints() {
		for _, e := range l.GetLbEndpoints() {
			address := e.GetEndpoint().GetAddress().GetSocketAddress()
			metadata := e.GetMetadata().GetFilterMetadata()["understudy.dev"].GetFields()
			lines = append(lines, fmt.Sprintf("%d%s %s:%d %v %s", l.GetPriority(), l.GetLocality().GetZone(), address.GetAddress(), address.GetPortValue(), e.GetHealthStatus(),
				metadata["forZones"].GetListValue().GetValues()[0].GetStringValue()))
		}
	}
	return strings.Join(lines, "\n")
}

// The server ignores its own zone and node, and does not group endpoints by them. It sends clients
// the localities, and hints as filter_metadata.
func TestServeIgnoresOwnLocation(t *testing.T) {
	t.Setenv("UNDERSTUDY_ZONE", "a")
	t.Setenv("UNDERSTUDY_NODE", "n1")
	api := kubetest.Start(t)
	api.Set("web", "s", 80, endpointJSON(1, "a", ""), endpointJSON(2, "b", ""))
	s, l := start(t, kubernetesOptions(t, api))
	l.wait(t, "cluster served")
	if got, want := servedEndpoints(t, s), "0a 10.0.0.1:80 HEALTHY a\n0b 10.0.0.2:80 HEALTHY b"; got != want {
		t.Errorf("it serves\n%s\nwant\n%s", got, want)
	}
}

// A terminating endpoint is DRAINING while another endpoint is ready. If no endpoint is ready,
// terminating endpoints that still serve are HEALTHY.
func TestTerminatingEndpoints(t *testing.T) {
	api := kubetest.Start(t)
	api.Set("web", "s", 80, endpointJSON(1, "a", terminating), endpointJSON(2, "a", ""), endpointJSON(3, "a", `"ready":false`))
	s, l := start(t, kubernetesOptions(t, api))
	l.wait(t, "cluster served")
	if got, want := servedEndpoints(t, s), "0a 10.0.0.1:80 DRAINING a\n0a 10.0.0.2:80 HEALTHY a\n0a 10.0.0.3:80 UNHEALTHY a"; got != want {
		t.Errorf("while one is ready it serves\n%s\nwant\n%s", got, want)
	}
	next := requestEndpoints(t, openStream(t, s, nil), "web")
	next()
	api.Set("web", "s", 80, endpointJSON(1, "a", terminating), endpointJSON(2, "a", terminating), endpointJSON(3, "a", `"ready":false`))
	next()
	if got, want := servedEndpoints(t, s), "0a 10.0.0.1:80 HEALTHY a\n0a 10.0.0.2:80 HEALTHY a\n0a 10.0.0.3:80 UNHEALTHY a"; got != want {
		t.Errorf("while none is ready it serves\n%s\nwant\n%s", got, want)
	}
}

// Two servers that saw the endpoints in a different order send the same version, because a version
// is a hash of the sorted content.
func TestReplicasAgreeOnVersions(t *testing.T) {
	api := kubetest.Start(t)
	api.Set("web", "s", 80, endpointJSON(1, "a", ""), endpointJSON(2, "b", ""))
	server1, l := start(t, kubernetesOptions(t, api))
	l.wait(t, "cluster served")
	next := requestEndpoints(t, openStream(t, server1, nil), "web")
	next()
	before := fetch(t, server1, endpointType, "web").GetVersionInfo()
	api.Set("web", "t", 80, endpointJSON(3, "a", ""))
	next()
	o := kubernetesOptions(t, api)
	o.Paths = []string{makeDir(t, t.TempDir(), "other.yaml")}
	server2, l := start(t, o)
	for l.wait(t, "cluster served")["cluster"] != "web" {
	}
	for _, kind := range []string{endpointType, clusterType, listenerType} {
		a, b := fetch(t, server1, kind, "web").GetVersionInfo(), fetch(t, server2, kind, "web").GetVersionInfo()
		if a != b || a == "" || a == before {
			t.Errorf("the versions of %s are %q and %q, and %q before a change", kind, a, b, before)
		}
	}
	if a, b := servedEndpoints(t, server1), servedEndpoints(t, server2); a != b {
		t.Errorf("one serves\n%s\nand the other\n%s", a, b)
	}
}
