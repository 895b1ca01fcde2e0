package eds

import (
	"net/url"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/given"
)

func target(t *testing.T, text string) resolver.Target {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return resolver.Target{URL: *u}
}

func TestTargets(t *testing.T) {
	for text, want := range map[string]struct{ hosts, cluster, authority string }{
		"eds://a:1,b.example.com:2,10.0.0.1:3/c": {"a:1,b.example.com:2,10.0.0.1:3", "c", "c"},
		"eds://xds.example.com:18000/payments":   {"xds.example.com:18000", "payments", "payments"},
		"eds://[::1]:18000/payments":             {"[::1]:18000", "payments", "payments"},
		"eds:///payments":                        {"", "payments", "payments"},
		"eds://h:1/a/b|c%3Fd%2Fe":                {"h:1", "a/b|c?d/e", "a%2Fb%7Cc%3Fd%2Fe"},
		"eds://h:1/zürich.example.com:443":       {"h:1", "zürich.example.com:443", "z%C3%BCrich.example.com:443"},
	} {
		hosts, cluster, err := parseTarget(target(t, text))
		if err != nil || strings.ReplaceAll(strings.Join(hosts, ","), dnsPrefix, "") != want.hosts || cluster != want.cluster {
			t.Errorf("%s: servers %q, cluster %q, error %v; want %q and %q", text, hosts, cluster, err, want.hosts, want.cluster)
		}
		overrider := given.Builder(Scheme)
		if got := overrider.OverrideAuthority(target(t, text)); got != want.authority {
			t.Errorf("%s: authority %q, want %q", text, got, want.authority)
		}
	}
}

func TestInvalidTargets(t *testing.T) {
	for text, want := range map[string]string{
		"eds://h:1":                              "a cluster has no name",
		"eds://h:1/":                             "a cluster has no name",
		"eds:///":                                "a cluster has no name",
		"eds://payments/":                        "a cluster has no name",
		"eds://h/payments":                       `has the server "`,
		"eds://:1/payments":                      `has the server ":1", want different ones with a name and a port from 1 to 65535`,
		"eds://h:0/payments":                     `has the server "h:0"`,
		"eds://h:65536/payments":                 `has the server "h:65536"`,
		"eds://h:/payments":                      `has the server "h:"`,
		"eds://a,b:1/payments":                   `has the server "`,
		"eds://a:1,,b:1/payments":                `has the server "`,
		"eds://a:1,b:1,a:1/payments":             `has the server "a:1", want different ones`,
		"eds://user:pw@h:1/payments":             "has user information",
		"eds://h:1/pay%FFments":                  "names a cluster that is not UTF-8",
		"eds://h:1/" + strings.Repeat("x", 5000): "names a cluster of 5000 bytes",
		"eds://h:1/xdstp://a/b":                  `"xdstp://a/b" is an xdstp: name, which is not supported`,
		"eds:///xdstp:a?cds=true":                "an xdstp: name",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = parseTarget(resolver.Target{URL: *u})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "want eds://xds.example.com:443/cluster") {
			t.Errorf("%s: %v, want an error with %q and the correct form", text, err, want)
		}
		if strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: the error contains the password: %v", text, err)
		}
	}
}

func TestInvalidQueries(t *testing.T) {
	for text, want := range map[string]string{
		"eds://h:1/payments?x=y":                          `has the unknown parameter "x" (in a name, ? is written %3F), want one of authority, cds, endpointPolicy, failoverTimeout, fallbackOnReachabilityOnly, node, outlierDetection, overflow, perPriority, prefer, ramp, region, slowStart, subset, subsetSeed, warmStandby, zone`,
		"eds:payments":                                    "lacks the slashes after the scheme",
		"eds://h:1/payments#fragment":                     "has a fragment, want none (in a name, # is written %23)",
		"eds://h:1/payments?fallbackOnReachabilityOnly=a": `"a" given, want true or false`,
		"eds://user:pw@h:1/payments?overflow=2":           `overflow: "2" given, want true or false`,
	} {
		err := given.Builder(Scheme).Check(target(t, text), false)
		if err == nil || !strings.HasPrefix(err.Error(), "eds: ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: %v, want an error with %q", text, err, want)
		}
	}
}

// If the node in the options is not valid protobuf, calls must fail with the reason.
func TestInvalidNode(t *testing.T) {
	c := build(t, "eds://"+serve(t, serveOnce)+"/c", given.Sources(WithNode(&corev3.Node{Id: "a\xff"})))
	if err := wait(t, "error", c.errors); !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("%v, want an error about the node", err)
	}
}
