package failover_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/understudy-lb/understudy/discovery/failover"
)

// inChild is set in the process that TestChannelThroughAProxy starts for each of its
// cases: the environment is read once a process.
const inChild = "FAILOVER_TEST_CASE"

func TestChannelThroughAProxy(t *testing.T) {
	cases := map[string]func(*testing.T, *tunnel){
		"names":    testProxyLooksUpNames,
		"no-proxy": testPartInNoProxy,
	}
	if name := os.Getenv(inChild); name != "" {
		cases[name](t, startTunnel(t))
		return
	}
	for name := range cases {
		child := exec.Command(os.Args[0], "-test.run=^TestChannelThroughAProxy$", "-test.v")
		child.Env = append(os.Environ(), inChild+"="+name)
		out, err := child.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestChannelThroughAProxy") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// testProxyLooksUpNames has both names looked up by the proxy: they exist nowhere
// else.
func testProxyLooksUpNames(t *testing.T, proxy *tunnel) {
	ca := newAuthority(t)
	us := startTier(t, "us", ca.server(t, "us-east.example.com"))
	eu := startTier(t, "eu", ca.server(t, "eu-west.example.com"))
	proxy.route("us-east.example.com:443", us.address)
	proxy.route("eu-west.example.com:443", eu.address)
	conn := dial(t, "failover:///us-east.example.com,eu-west.example.com:443", grpc.WithTransportCredentials(ca.client("")))
	await(t, conn, "us as us-east.example.com")
	us.server.Stop()
	await(t, conn, "eu as eu-west.example.com:443")
	us.start(t)
	await(t, conn, "us as us-east.example.com")
	if want := []string{"eu-west.example.com:443", "us-east.example.com:443"}; !slices.Equal(proxy.seen(), want) {
		t.Errorf("the proxy was asked for %q, want %q", proxy.seen(), want)
	}
}

// testPartInNoProxy has the first part, a loopback name, dialled without the proxy.
func testPartInNoProxy(t *testing.T, proxy *tunnel) {
	ca := newAuthority(t)
	near := startTier(t, "near", ca.server(t, "localhost"))
	far := startTier(t, "far", ca.server(t, "eu-west.example.com"))
	proxy.route("eu-west.example.com:443", far.address)
	_, port, err := net.SplitHostPort(near.address)
	if err != nil {
		t.Fatal(err)
	}
	found := grpc.WithResolvers(failover.NewBuilder())
	conn := dial(t, "failover:///localhost:"+port+",eu-west.example.com:443", found, grpc.WithTransportCredentials(ca.client("")))
	await(t, conn, "near as localhost:"+port)
	if len(proxy.seen()) > 0 {
		t.Errorf("the proxy was asked for %q before it was needed", proxy.seen())
	}
	near.server.Stop()
	await(t, conn, "far as eu-west.example.com:443")
}

// tunnel is an HTTP proxy that knows only CONNECT, and names of its own.
type tunnel struct {
	mu     sync.Mutex
	routes map[string]string
	asked  map[string]bool
}

// startTunnel starts a proxy and makes it that of the process. It must be called
// before anything asks for the process's proxy.
func startTunnel(t *testing.T) *tunnel {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tunnel{routes: make(map[string]string), asked: make(map[string]bool)}
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() { listener.Close(); connections.Wait() })
	t.Setenv("HTTPS_PROXY", "http://"+listener.Addr().String())
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "")
	return p
}

// route makes the proxy connect those who ask for name to address.
func (p *tunnel) route(name, address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.routes[name] = address
}

// seen returns the names that were asked for, sorted.
func (p *tunnel) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var seen []string
	for name := range p.asked {
		seen = append(seen, name)
	}
	slices.Sort(seen)
	return seen
}

func (p *tunnel) serve(client net.Conn) {
	defer client.Close()
	reader := bufio.NewReader(client)
	request, err := http.ReadRequest(reader)
	if err != nil {
		return
	}
	p.mu.Lock()
	address := p.routes[request.Host]
	p.asked[request.Host] = true
	p.mu.Unlock()
	server, err := net.Dial("tcp", address)
	if err != nil {
		fmt.Fprintf(client, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return
	}
	defer server.Close()
	fmt.Fprintf(client, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		io.Copy(server, reader)
		server.Close()
	}()
	io.Copy(client, server)
}
