package failover_test

import (
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/testproxy"
)

// caseVariable is an environment variable with the name of the case to run. It is set in the child
// processes of TestChannelThroughProxy. Each case has its own process, because Go reads the proxy
// environment once per process.
const caseVariable = "FAILOVER_TEST_CASE"

func TestChannelThroughProxy(t *testing.T) {
	cases := map[string]func(*testing.T, *testproxy.Proxy){
		"names":    testProxyLooksUpNames,
		"no-proxy": testEntryInNoProxy,
	}
	if name := os.Getenv(caseVariable); name != "" {
		cases[name](t, startProxy(t))
		return
	}
	for name := range cases {
		child := exec.Command(os.Args[0], "-test.run=^TestChannelThroughProxy$", "-test.v")
		child.Env = append(os.Environ(), caseVariable+"="+name)
		out, err := child.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestChannelThroughProxy") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func testProxyLooksUpNames(t *testing.T, proxy *testproxy.Proxy) {
	ca := newCertAuthority(t)
	us := startServer(t, "us", ca.server(t, "us-east.example.com"))
	eu := startServer(t, "eu", ca.server(t, "eu-west.example.com"))
	proxy.Route("us-east.example.com:443", us.address)
	proxy.Route("eu-west.example.com:443", eu.address)
	conn := dial(t, "failover:///us-east.example.com,eu-west.example.com:443", grpc.WithTransportCredentials(ca.client()))
	await(t, conn, "us as us-east.example.com")
	us.server.Stop()
	await(t, conn, "eu as eu-west.example.com:443")
	us.start(t)
	await(t, conn, "us as us-east.example.com")
	if want := []string{"eu-west.example.com:443", "us-east.example.com:443"}; !slices.Equal(proxy.RequestedNames(), want) {
		t.Errorf("the proxy received requests for %q, want %q", proxy.RequestedNames(), want)
	}
}

func testEntryInNoProxy(t *testing.T, proxy *testproxy.Proxy) {
	ca := newCertAuthority(t)
	near := startServer(t, "near", ca.server(t, "localhost"))
	far := startServer(t, "far", ca.server(t, "eu-west.example.com"))
	proxy.Route("eu-west.example.com:443", far.address)
	_, port, err := net.SplitHostPort(near.address)
	if err != nil {
		t.Fatal(err)
	}
	resolvers := grpc.WithResolvers(given.Builder(failover.Scheme))
	conn := dial(t, "failover:///localhost:"+port+",eu-west.example.com:443", resolvers, grpc.WithTransportCredentials(ca.client()))
	await(t, conn, "near as localhost:"+port)
	if len(proxy.RequestedNames()) > 0 {
		t.Errorf("the proxy received %q before it was needed", proxy.RequestedNames())
	}
	near.server.Stop()
	await(t, conn, "far as eu-west.example.com:443")
}

// startProxy starts a proxy and sets it in the environment. It must be called before the process
// uses a proxy for the first time.
func startProxy(t *testing.T) *testproxy.Proxy {
	t.Helper()
	proxy := testproxy.Start(t)
	t.Setenv("HTTPS_PROXY", proxy.URL)
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "")
	return proxy
}
