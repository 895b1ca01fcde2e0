package srv_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/understudy-lb/understudy/discovery/srv"
	"github.com/understudy-lb/understudy/internal/testing/dnstest"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

func TestTargets(t *testing.T) {
	dns := startDNS(t)
	set(dns, shop, "10 1 80 a", "20 1 81 b")
	set(dns, "_http._tcp.shop.test", "0 1 82 c")
	for text, want := range map[string]string{
		"srv://DNS/shop.test":                           "127.0.0.1:80 127.0.0.2:81",
		"srv://DNS/shop.test.":                          "127.0.0.1:80 127.0.0.2:81",
		"srv://DNS/_http._tcp.shop.test":                "127.0.0.3:82",
		"srv://DNS/shop.test?verify=target&refresh=0s":  "127.0.0.1:80 127.0.0.2:81",
		"srv://DNS/shop.test?verify=record&refresh=10s": "127.0.0.1:80/a.test 127.0.0.2:81/b.test",
	} {
		c, _ := build(t, dns, text)
		if got := c.next(t); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestAuthority(t *testing.T) {
	for text, want := range map[string]string{
		"srv:///shop.example.com":             "shop.example.com",
		"srv:///shop.example.com.":            "shop.example.com",
		"srv:///_http._tcp.example.com":       "example.com",
		"srv://192.0.2.53/_x._udp.a.b":        "a.b",
		"srv:///shop.example.com?authority=x": "x",
	} {
		if got := given.Builder(srv.Scheme).OverrideAuthority(target(text)); got != want {
			t.Errorf("%s: authority %s, want %s", text, got, want)
		}
	}
}

func TestInvalidTargets(t *testing.T) {
	for text, want := range map[string]string{
		"srv:shop.test":                             "lacks the slashes after the scheme",
		"srv:///":                                   "names no service",
		"srv://u@h/shop.test":                       "has user information",
		"srv:///shop.test#x":                        "has a fragment",
		"srv:///shop.test:443":                      "has a port or an address: the ports come from the records",
		"srv:///_http.shop.test":                    "names no service and protocol",
		"srv:///_http._tcp":                         "names no service and protocol",
		"srv:///a..b":                               "results in the name \"_grpc._tcp.a..b\", which is not a DNS name",
		"srv:///a/b":                                "which is not a DNS name",
		"srv:///" + longLabel(64) + ".test":         "which is not a DNS name",
		"srv:///" + strings.Repeat("a.", 130) + "a": "which is not a DNS name",
		"srv://:53/shop.test":                       "names a port without a name server",
		"srv:///shop.test?verify=dns":               `verify: "dns" given, want target or record`,
		"srv:///shop.test?refresh=1ms":              "refresh: 1ms given, want a duration such as 10s, of 1s and more",
		"srv:///shop.test?dns=udp":                  `dns: "udp" given, want tcp`,
		"srv:///shop.test?nothing=1":                `unknown parameter "nothing" (in a name, ? is written %3F), want one of authority, dns, endpointPolicy, failoverTimeout, node, outlierDetection, overflow, perPriority, prefer, ramp, refresh, region, removeAfter, slowStart, subset, subsetSeed, verify, warmStandby, zone`,
	} {
		err := given.Builder(srv.Scheme).Check(target(text), false)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "srv: ") {
			t.Errorf("Validate(%s) = %v, want %q", text, err, want)
		}
	}
	err := given.Builder(srv.Scheme, given.Set("RemoveAfter", -1)).Check(target("srv:///shop.test"), false)
	if err == nil || !strings.Contains(err.Error(), "removeAfter: -1 given, want 1 and more") {
		t.Errorf("Validate = %v, want the error of the option", err)
	}
}

func longLabel(n int) string { return strings.Repeat("a", n) }

// After an invalid answer, the channel must get an error with the reason, or keep the last good
// answer if there is one.
func TestInvalidAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		setUp func(*dnstest.Server)
		want  string
	}{
		"NXDOMAIN": {func(*dnstest.Server) {}, "srv: lookup " + shop + ". on 127.0.0.1:"},
		"SERVFAIL": {func(dns *dnstest.Server) {
			dns.SetAnswer(shop, "SRV", dnstest.Answer{Code: dnsmessage.RCodeServerFailure})
		}, "server misbehaving"},
		"REFUSED": {func(dns *dnstest.Server) {
			dns.SetAnswer(shop, "SRV", dnstest.Answer{Code: dnsmessage.RCodeRefused})
		}, "lookup " + shop},
		"no answer":     {func(dns *dnstest.Server) { dns.Hush(true) }, "i/o timeout"},
		"no server":     {func(dns *dnstest.Server) { dns.Stop() }, "connection refused"},
		"another type":  {func(dns *dnstest.Server) { dns.Set(shop, "A", "127.0.0.1") }, "no such host"},
		"a CNAME loop":  {func(dns *dnstest.Server) { setCNAMELoop(dns, shop, "SRV") }, "lookup " + shop},
		"no addresses":  {func(dns *dnstest.Server) { dns.Set(shop, "SRV", "0 0 1 gone.test.") }, "lookup gone.test"},
		"a target loop": {func(dns *dnstest.Server) { dns.Set(shop, "SRV", "0 0 1 l.test."); setCNAMELoop(dns, "l.test", "A") }, "lookup l.test"},
		"bad targets":   {func(dns *dnstest.Server) { dns.Set(shop, "SRV", "0 0 1 a\\x00b.test.") }, "contain invalid names"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dns := startDNS(t)
			test.setUp(dns)
			c, _ := build(t, dns, "srv://DNS/shop.test.")
			c.expect(t, test.want)
		})
		t.Run(name+" later", func(t *testing.T) {
			t.Parallel()
			dns := startDNS(t)
			set(dns, shop, "0 0 1 a")
			c, _ := build(t, dns, "srv://DNS/shop.test.?refresh=1s")
			c.expect(t, "127.0.0.1:1")
			dns.Set("a.test", "A")
			test.setUp(dns)
			timeout := time.Second // used if there is no server to count lookups
			if name != "no server" {
				dns.Await(shop, "SRV", 2)
				timeout = 0
			}
			select {
			case line := <-c.lines:
				t.Errorf("the channel received %q, want nothing", line)
			case <-time.After(timeout):
			}
		})
	}
}

func setCNAMELoop(dns *dnstest.Server, name, kind string) {
	dns.Set(name, kind, "CNAME loop.test.")
	dns.Set("loop.test", kind, "CNAME "+name+".")
}

func TestManyRecords(t *testing.T) {
	t.Parallel()
	dns := startDNS(t)
	const n = 1500
	var records []string
	for i := range n {
		host := fmt.Sprintf("h%d.test", i)
		records = append(records, fmt.Sprintf("%d 1 1 %s.", i/500, host))
		dns.Set(host, "A", fmt.Sprintf("127.1.%d.%d", i/250, i%250))
	}
	dns.Set(shop, "SRV", records...)
	c, _ := build(t, dns, "srv://DNS/shop.test")
	got := 0
	for got < n { // the first update may be incomplete on a slow machine
		got = len(strings.Fields(c.next(t)))
	}
	if got != n {
		t.Errorf("%d endpoints, want %d", got, n)
	}
}

// A new record must be used immediately. A record must be removed after two answers without it. The
// target "." must remove all records immediately.
func TestRecordsChange(t *testing.T) {
	t.Parallel()
	dns := startDNS(t)
	set(dns, shop, "0 0 1 a")
	c, _ := build(t, dns, "srv://DNS/shop.test?refresh=1s")
	c.expect(t, "127.0.0.1:1")
	set(dns, shop, "0 0 1 a", "0 0 1 b")
	c.expect(t, "127.0.0.1:1 127.0.0.2:1")
	before := dns.Asked(shop, "SRV")
	set(dns, shop, "0 0 1 b")
	if got := c.next(t); got != "127.0.0.2:1" || dns.Asked(shop, "SRV") < before+2 {
		t.Errorf("%s after %d answers, want only the second address after two", got, dns.Asked(shop, "SRV")-before)
	}
	dns.Set(shop, "SRV", "0 0 0 .")
	if got := c.next(t); got != "" {
		t.Errorf("%q, want no endpoints", got)
	}
}
