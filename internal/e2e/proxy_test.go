package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/understudy-lb/understudy/internal/testing/testcert"
	"github.com/understudy-lb/understudy/internal/testing/testproxy"
)

// runProxiedClient makes calls and prints a line for each answer. It needs a separate process,
// because net/http reads the proxy from the environment only once.
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
		// Calls may fail while the first priority stops.
		got, err := who(ctx, cc, grpc.WaitForReady(true))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, printErr := fmt.Printf("%s %s %v\n", got.name, got.authority, err); printErr != nil {
			return nil
		}
	}
}

// startProxied starts a client behind a proxy in a separate process. await waits for an answer of
// the named backend, and returns the authority that the backend saw.
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

func TestFileThroughProxy(t *testing.T) {
	t.Parallel()
	ca := testcert.New(t)
	certificate := ca.Pair("shop", "shop.example.com").Load(t)
	first, second := startServer(t, "first", &certificate), startServer(t, "second", &certificate)
	proxy := testproxy.Start(t)
	proxy.Route("192.0.2.1:443", first.address)
	proxy.Route("192.0.2.2:443", second.address)
	path := filepath.Join(t.TempDir(), "endpoints.yaml")
	writeEndpoints(t, path, "192.0.2.1:443", "192.0.2.2:443")

	await := startProxied(t, "file://"+path+"?authority=shop.example.com", ca, proxy.URL)
	if got := await("first"); got != "shop.example.com" {
		t.Errorf("authority = %q, want shop.example.com", got)
	}
	first.grpc.Stop()
	if got := await("second"); got != "shop.example.com" {
		t.Errorf("authority = %q, want shop.example.com", got)
	}
	if want := []string{"192.0.2.1:443", "192.0.2.2:443"}; !slices.Equal(proxy.RequestedNames(), want) {
		t.Errorf("the proxy was asked for %q, want %q", proxy.RequestedNames(), want)
	}
}

// The proxy looks up the names. The certificate of each priority must have that priority's name.
func TestFailoverThroughProxy(t *testing.T) {
	t.Parallel()
	ca := testcert.New(t)
	east := ca.Pair("east", "us-east.example.com").Load(t)
	west := ca.Pair("west", "eu-west.example.com").Load(t)
	first, second := startServer(t, "first", &east), startServer(t, "second", &west)
	proxy := testproxy.Start(t)
	proxy.Route("us-east.example.com:443", first.address)
	proxy.Route("eu-west.example.com:443", second.address)

	await := startProxied(t, "failover:///us-east.example.com:443,eu-west.example.com:443", ca, proxy.URL)
	if got := await("first"); got != "us-east.example.com:443" {
		t.Errorf("authority = %q, want us-east.example.com:443", got)
	}
	first.grpc.Stop()
	if got := await("second"); got != "eu-west.example.com:443" {
		t.Errorf("authority = %q, want eu-west.example.com:443", got)
	}
	if want := []string{"eu-west.example.com:443", "us-east.example.com:443"}; !slices.Equal(proxy.RequestedNames(), want) {
		t.Errorf("the proxy was asked for %q, want %q", proxy.RequestedNames(), want)
	}
}
