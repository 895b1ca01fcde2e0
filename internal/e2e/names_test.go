package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery/eds"
	_ "github.com/understudy-lb/understudy/discovery/kubernetes"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/testcert"
)

// By default, a certificate must have a name that is in the target. Names from DNS, a file or a
// management server do not count.
func TestNamesOnCertificates(t *testing.T) {
	t.Parallel()
	ca := testcert.New(t)
	backend := func(name string) *server {
		certificate := ca.Pair(name, name).Load(t)
		return startServer(t, name, &certificate)
	}
	shop, record := backend("shop.test"), backend("record.test")
	port := func(s *server) string { return s.address[strings.LastIndex(s.address, ":")+1:] }
	dns := startDNS(t)
	for _, name := range []string{"shop.test", "record.test"} {
		dns.Set(name, "A", "127.0.0.1")
	}
	// The SRV record of shop.test has the host record.test.
	dns.Set("_grpc._tcp.shop.test", "SRV", "0 0 "+port(shop)+" record.test.")
	dns.Set("_grpc._tcp.forged.test", "SRV", "0 0 "+port(record)+" record.test.")
	manager := startManager(t, func(s *adstest.Stream) error {
		if err := s.Respond("1", "n", adstest.Cluster("shop.test", shop.address)); err != nil {
			return err
		}
		return s.Drain()
	})
	other := endpointsFile(t, endpoints([]string{shop.address}))
	file := filepath.Join(filepath.Dir(other), "shop.test.yaml")
	if err := os.Link(other, file); err != nil {
		t.Fatal(err)
	}
	dnsPrefix := "dns://" + dns.Address() + "/"

	for target, want := range map[string]string{
		"srv://" + dns.Address() + "/shop.test":                               "shop.test",
		"srv://" + dns.Address() + "/forged.test":                             "certificate is valid for record.test, not forged.test",
		"srv://" + dns.Address() + "/forged.test?verify=record":               "record.test",
		"srv://" + dns.Address() + "/shop.test?verify=record":                 "certificate is valid for shop.test, not record.test",
		"srv://" + dns.Address() + "/forged.test?authority=record.test":       "record.test",
		"failover:///srv://" + dns.Address() + "/forged.test%3Fverify=record": "record.test",
		"failover:///srv://" + dns.Address() + "/forged.test":                 "certificate is valid for record.test, not forged.test",

		"eds://" + manager + "/shop.test":                        "shop.test",
		"failover:///eds://" + manager + "/shop.test":            "shop.test",
		"file://" + file:                                         "shop.test",
		"file://" + other:                                        "certificate is valid for shop.test, not endpoints",
		"file://" + other + "?authority=shop.test":               "shop.test",
		"failover:///file://" + other + "%3Fauthority=shop.test": "shop.test",

		"failover:///" + dnsPrefix + "shop.test:" + port(shop):                              "shop.test:" + port(shop),
		"failover:///" + dnsPrefix + "record.test:" + port(shop):                            "certificate is valid for shop.test, not record.test",
		"failover:///" + dnsPrefix + "record.test:" + port(shop) + "%3Fauthority=shop.test": "shop.test",
		"failover:///" + dnsPrefix + "record.test:" + port(shop) + "?authority=shop.test":   "shop.test",
		// The authority of an entry takes precedence over that of the target, also in nested
		// targets.
		"failover:///" + dnsPrefix + "record.test:" + port(shop) + "%3Fauthority=shop.test?authority=no.test":                 "shop.test",
		"failover:///failover:///" + dnsPrefix + "record.test:" + port(shop) + "%253Fauthority=shop.test%3Fauthority=no.test": "shop.test",
		"failover:///" + dnsPrefix + "no.test:" + port(shop) + "," + dnsPrefix + "shop.test:" + port(shop):                    "shop.test:" + port(shop),
	} {
		cc, err := grpc.NewClient(target, given.Dial(given.Sources(eds.WithInsecure())),
			grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: ca.Pool()})))
		if err != nil {
			t.Fatal(err)
		}
		got := authorityOf(t, cc)
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
		cc.Close()
	}
	// A server name in the credentials takes precedence over all other names.
	cc := newClient(t, "failover:///"+dnsPrefix+"record.test:"+port(shop)+"%3Fauthority=no.test", given.Dial(given.Set("Authority", "nor.test")),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: ca.Pool(), ServerName: "shop.test"})))
	if got := authorityOf(t, cc); got != "shop.test" {
		t.Errorf("with a name in the credentials: %s", got)
	}
}

func authorityOf(t *testing.T, cc *grpc.ClientConn) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	a, err := who(ctx, cc)
	if err != nil {
		return fmt.Sprint(err)
	}
	return a.authority
}

func TestDocumentListsAuthorities(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/targets.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		if len(cells) != 4 || !strings.Contains(cells[0], ":///") && !strings.Contains(cells[0], "://xds") {
			continue
		}
		rows++
		target := strings.Trim(strings.TrimPrefix(cells[0], "| "), "`")
		for _, name := range strings.Split(cells[2], "`") {
			if strings.Contains(name, " ") || name == "" {
				continue
			}
			if !strings.Contains(target, name) {
				t.Errorf("%s: the name %s is not in the target", target, name)
			}
		}
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		if authority := resolver.Get(u.Scheme).(resolver.AuthorityOverrider).OverrideAuthority(resolver.Target{URL: *u}); !strings.Contains(cells[2], "`"+strings.TrimSuffix(authority, ":443")+"`") {
			t.Errorf("%s: its authority is %s, docs/targets.md says %s", target, authority, cells[2])
		}
	}
	if rows != 7 {
		t.Errorf("found %d targets in docs/targets.md, want 7", rows)
	}
}
