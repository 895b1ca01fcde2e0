package failover_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// startTwoServers starts two servers, whose certificates contain the given names. The returned dial
// option resolves us.test:443 and eu.test:443 to the addresses of these servers.
func startTwoServers(t *testing.T, ca certAuthority, usName, euName string) (us, eu *testServer, resolvers grpc.DialOption) {
	t.Helper()
	us, eu = startServer(t, "us", ca.server(t, usName)), startServer(t, "eu", ca.server(t, euName))
	n := newFakeDNS()
	n.set("us.test:443", nil, us.address)
	n.set("eu.test:443", nil, eu.address)
	return us, eu, grpc.WithResolvers(given.Builder(failover.Scheme, given.Sources(failover.WithResolvers(n))))
}

const tlsTarget = "failover:///lab:///us.test:443,lab:///eu.test:443"

func TestEntriesHaveOwnCertificates(t *testing.T) {
	t.Parallel()
	ca := newCertAuthority(t)
	us, _, resolvers := startTwoServers(t, ca, "us.test", "eu.test")
	conn := dial(t, tlsTarget, resolvers, grpc.WithTransportCredentials(ca.client()))
	await(t, conn, "us as us.test:443")
	us.server.Stop()
	await(t, conn, "eu as eu.test:443")
	us.start(t)
	await(t, conn, "us as us.test:443")
}

// The server of the second entry has the certificate of the first entry, so the client must refuse
// it.
func TestCertificateOfOtherEntryIsRefused(t *testing.T) {
	ca := newCertAuthority(t)
	us, _, resolvers := startTwoServers(t, ca, "us.test", "us.test")
	conn := dial(t, tlsTarget, resolvers, grpc.WithTransportCredentials(ca.client()))
	await(t, conn, "us as us.test:443")
	us.server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		got, err := call(ctx, conn)
		if err == nil {
			t.Fatalf("call was answered by %q", got)
		}
		if strings.Contains(err.Error(), "certificate is valid for us.test, not eu.test") {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("calls fail with %v, want an error about the certificate", err)
		}
	}
}

func TestAuthorityEqualsThatOfSingleTarget(t *testing.T) {
	n := newFakeDNS()
	server := startServer(t, "x", insecure.NewCredentials())
	resolvers := grpc.WithResolvers(n, given.Builder(failover.Scheme, given.Sources(failover.WithResolvers(n))))
	for name, target := range map[string]string{
		"plain.test:443":   "lab:///plain.test:443",
		":443":             "lab:///:443",
		"[2001:db8::1]:80": "lab:///[2001:db8::1]:80",
		"a b/c":            "lab:///a b/c",
		"é!$&'()*+;=@~":    "lab:///é!$&'()*+;=@~",
	} {
		n.set(name, nil, server.address)
		single, err := call(t.Context(), dial(t, target, resolvers, plaintext), grpc.WaitForReady(true))
		if err != nil {
			t.Fatal(err)
		}
		listed, err := call(t.Context(), dial(t, "failover:///"+target, resolvers, plaintext), grpc.WaitForReady(true))
		if err != nil {
			t.Fatal(err)
		}
		if listed != single {
			t.Errorf("%s: called %q, and alone %q", target, listed, single)
		}
	}
}
