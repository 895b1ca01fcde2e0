package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/understudy-lb/understudy/internal/testcert"
)

// proxy is an HTTP CONNECT proxy that takes names for addresses on loopback.
type proxy struct {
	routes map[string]string // what clients ask for to where it is

	mu    sync.Mutex
	asked []string
}

// startProxy starts a proxy, which stops with the test, and returns its URL.
func startProxy(t *testing.T, p *proxy) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		running.Wait()
	})
	return "http://" + listener.Addr().String()
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	reader := bufio.NewReader(client)
	request, err := http.ReadRequest(reader)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.asked = append(p.asked, request.Host)
	to, known := p.routes[request.Host]
	p.mu.Unlock()
	if request.Method != http.MethodConnect || !known {
		fmt.Fprint(client, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return
	}
	backend, err := net.Dial("tcp", to)
	if err != nil {
		fmt.Fprint(client, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return
	}
	defer backend.Close()
	fmt.Fprint(client, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		io.Copy(backend, reader)
		backend.(*net.TCPConn).CloseWrite()
	}()
	io.Copy(client, backend)
}

func (p *proxy) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	requests := slices.Clone(p.asked)
	slices.Sort(requests)
	return slices.Compact(requests)
}

// runProxiedClient is the role "proxied": a client that prints who answered each
// call, a line each, whenever it reads a line. Which proxy a process uses is settled
// once, from its environment, so it must be a process of its own.
func runProxiedClient() error {
	pool := x509.NewCertPool()
	pem, err := os.ReadFile(os.Getenv("E2E_CA"))
	if err != nil {
		return err
	}
	pool.AppendCertsFromPEM(pem)
	cc, err := grpc.NewClient(os.Getenv("E2E_TARGET"),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool})))
	if err != nil {
		return err
	}
	defer cc.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		// Calls fail while a tier dies; the test reads on until it sees the next.
		got, err := who(ctx, cc, grpc.WaitForReady(true))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, printErr := fmt.Printf("%s %s %v\n", got.name, got.authority, err); printErr != nil {
			return nil
		}
	}
}

// startProxied starts a client behind the proxy, and returns a function that reads
// its answers until the named backend's, and returns the authority of that call.
func startProxied(t *testing.T, target string, ca *testcert.Authority, proxyURL string) (await func(name string) string) {
	t.Helper()
	_, stdout := startSelf(t, "proxied", "E2E_TARGET="+target, "E2E_CA="+ca.File(), "HTTPS_PROXY="+proxyURL, "NO_PROXY=")
	return func(name string) string {
		t.Helper()
		for {
			line, err := stdout.ReadString('\n')
			if err != nil {
				t.Fatalf("the client ended before %s answered: %v", name, err)
			}
			if got, rest, _ := strings.Cut(line, " "); got == name {
				authority, _, _ := strings.Cut(rest, " ")
				return authority
			}
		}
	}
}

func TestFileThroughAProxy(t *testing.T) {
	t.Parallel()
	ca := testcert.New(t)
	certificate := ca.Pair("shop", "shop.example.com").Load(t)
	first, second := startServer(t, "first", &certificate), startServer(t, "second", &certificate)
	p := &proxy{routes: map[string]string{"192.0.2.1:443": first.address, "192.0.2.2:443": second.address}}
	path := filepath.Join(t.TempDir(), "endpoints.yaml")
	writeEndpoints(t, path, "192.0.2.1:443", "192.0.2.2:443")

	await := startProxied(t, "file://"+path+"?authority=shop.example.com", ca, startProxy(t, p))
	if got := await("first"); got != "shop.example.com" {
		t.Errorf("authority = %q, want shop.example.com", got)
	}
	first.grpc.Stop()
	if got := await("second"); got != "shop.example.com" {
		t.Errorf("authority = %q, want shop.example.com", got)
	}
	if want := []string{"192.0.2.1:443", "192.0.2.2:443"}; !slices.Equal(p.requests(), want) {
		t.Errorf("the proxy was asked for %q, want %q", p.requests(), want)
	}
}

// Names are left to the proxy to resolve, and each tier is verified against its own.
func TestFailoverThroughAProxy(t *testing.T) {
	t.Parallel()
	ca := testcert.New(t)
	east := ca.Pair("east", "us-east.example.com").Load(t)
	west := ca.Pair("west", "eu-west.example.com").Load(t)
	first, second := startServer(t, "first", &east), startServer(t, "second", &west)
	p := &proxy{routes: map[string]string{"us-east.example.com:443": first.address, "eu-west.example.com:443": second.address}}

	await := startProxied(t, "failover:///us-east.example.com:443,eu-west.example.com:443", ca, startProxy(t, p))
	if got := await("first"); got != "us-east.example.com:443" {
		t.Errorf("authority = %q, want us-east.example.com:443", got)
	}
	first.grpc.Stop()
	if got := await("second"); got != "eu-west.example.com:443" {
		t.Errorf("authority = %q, want eu-west.example.com:443", got)
	}
	if want := []string{"eu-west.example.com:443", "us-east.example.com:443"}; !slices.Equal(p.requests(), want) {
		t.Errorf("the proxy was asked for %q, want %q", p.requests(), want)
	}
}
