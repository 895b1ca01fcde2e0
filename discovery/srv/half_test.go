package srv_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/discovery/srv"
	"github.com/understudy-lb/understudy/internal/testing/dnstest"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// If the lookup of one address family fails, the known addresses of that family must stay in use
// together with the current addresses of the other family, even after the channel was idle.
func TestOneFamilyFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &fakeDNS{hosts: []string{"a."}}
		b := h.builder()
		for i, step := range []struct{ v4, v6, want string }{
			{"", "2001:db8::1", "[2001:db8::1]:1"},
			{"10.0.0.1", "2001:db8::1", "[2001:db8::1]:1 10.0.0.1:1"},
			{"", "2001:db8::1", "[2001:db8::1]:1 10.0.0.1:1"},
			{"", "2001:db8::2", "[2001:db8::2]:1 10.0.0.1:1"},
			{"10.0.0.2", "", "10.0.0.2:1 [2001:db8::2]:1"},
			{"none", "", "[2001:db8::2]:1"},
			{"10.0.0.2", "none", "10.0.0.2:1"},
			{"10.0.0.2", "", "10.0.0.2:1"},
		} {
			h.set(map[string]string{"a. ip4": step.v4, "a. ip6": step.v6})
			got := statesOf(t, b, "srv:///shop.test", func() { time.Sleep(10 * time.Minute) })
			for address := range strings.SplitSeq(step.want, " ") {
				if !strings.Contains(got, address) || len(got) != len(step.want) {
					t.Errorf("channel %d saw %s, want %s", i, got, step.want)
				}
			}
		}
	})
}

func TestRecordWithPort0(t *testing.T) {
	dns := startDNS(t)
	set(dns, shop, "0 0 0 a", "0 0 1 b")
	c, _ := build(t, dns, "srv://DNS/shop.test.")
	c.expect(t, "127.0.0.2:1")
	set(dns, "_none._tcp.shop.test", "0 0 0 a")
	c, _ = build(t, dns, "srv://DNS/_none._tcp.shop.test.")
	c.expect(t, "the record of a.test. is ignored, because its port is 0")
}

// With dns=tcp, names must be looked up only over TCP, so that truncated UDP responses have no
// effect.
func TestTruncatingServer(t *testing.T) {
	dns := startDNS(t)
	set(dns, shop, "0 0 1 a", "0 0 1 b")
	dns.SetAnswer(shop, "SRV", dnstest.Answer{Records: []string{"0 0 1 a.test.", "0 0 1 b.test."}, Cut: true})
	dns.SetAnswer("b.test", "A", dnstest.Answer{Records: []string{"127.0.0.3", "127.0.0.4"}, Cut: true})
	c, _ := build(t, dns, "srv://DNS/shop.test.")
	c.expect(t, "127.0.0.1:1")
	c, _ = build(t, dns, "srv://DNS/shop.test.?dns=tcp")
	line := c.next(t)
	for _, want := range []string{"127.0.0.1:1", "127.0.0.3:1", "127.0.0.4:1"} {
		if !strings.Contains(line, want) {
			t.Errorf("over TCP the channel received %s, want %s in it", line, want)
		}
	}
}

// An authority that the user sets must take precedence over the names in the records
// (verify=record).
func TestAuthorityOverridesRecordNames(t *testing.T) {
	dns := startDNS(t)
	set(dns, shop, "0 0 1 a")
	srvTarget := "srv://" + dns.Address() + "/shop.test%3Fverify=record"
	plainTarget := strings.Replace(srvTarget, "%3F", "?", 1)
	authorityOption := given.Set("Authority", "pinned.test")
	for name, test := range map[string]struct {
		builder      given.Resolvers
		target, want string
	}{
		"nothing pinned":        {given.Builder(srv.Scheme), plainTarget, "127.0.0.1:1/a.test"},
		"by an option":          {given.Builder(srv.Scheme, authorityOption), plainTarget, "127.0.0.1:1"},
		"nothing in a list":     {given.Builder(failover.Scheme), "failover:///" + srvTarget, "127.0.0.1:1/a.test"},
		"by a list":             {given.Builder(failover.Scheme), "failover:///" + srvTarget + "?authority=pinned.test", "127.0.0.1:1"},
		"by an option of it":    {given.Builder(failover.Scheme, authorityOption), "failover:///" + srvTarget, "127.0.0.1:1"},
		"by the entry's option": {given.Builder(failover.Scheme, given.Sources(failover.WithResolvers(given.Builder(srv.Scheme, authorityOption)))), "failover:///" + srvTarget, "127.0.0.1:1/pinned.test"},
	} {
		c := channel{lines: make(chan string, 1000)}
		r, err := test.builder.Build(target(test.target), c, resolver.BuildOptions{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Cleanup(r.Close)
		if got := c.next(t); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
