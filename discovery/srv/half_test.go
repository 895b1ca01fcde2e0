package srv_test

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/discovery/srv"
	"github.com/understudy-lb/understudy/internal/testing/dnstest"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/xnet"
)

// halves holds the results of the IPv4 and the IPv6 lookup of each host. A result is an address,
// "none", or "" for a failure.
type halves struct {
	mu sync.Mutex
	of map[string]string
}

func (*halves) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	return "", []*net.SRV{{Target: "a.", Port: 1}}, nil
}

func (h *halves) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch address := h.of[network]; address {
	case "":
		return nil, &net.DNSError{Name: host, Err: "server misbehaving", IsTemporary: true}
	case "none":
		return nil, &net.DNSError{Name: host, Err: "no such host", IsNotFound: true}
	default:
		return []netip.Addr{netip.MustParseAddr(address)}, nil
	}
}

func (h *halves) set(v4, v6 string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of = map[string]string{"ip4": v4, "ip6": v6}
}

// The lookup of one address family fails. Its known addresses must stay in use together with the
// current ones of the other family, even after the channel was idle.
func TestHalfAnAnswerLeavesTheOtherHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &halves{}
		b := given.Builder(srv.Scheme, given.Sources(discovery.OwnOption(func(o *xnet.LookupOptions) { o.Resolver = h })))
		for i, step := range []struct{ v4, v6, want string }{
			{"", "2001:db8::1", "[2001:db8::1]:1"},
			{"10.0.0.1", "2001:db8::1", "[2001:db8::1]:1+10.0.0.1:1"},
			{"", "2001:db8::1", "[2001:db8::1]:1+10.0.0.1:1"},
			{"", "2001:db8::2", "[2001:db8::2]:1+10.0.0.1:1"},
			{"10.0.0.2", "", "10.0.0.2:1+[2001:db8::2]:1"},
			{"none", "", "[2001:db8::2]:1"},
			{"10.0.0.2", "none", "10.0.0.2:1"},
			{"10.0.0.2", "", "10.0.0.2:1"},
		} {
			h.set(step.v4, step.v6)
			got := seen(t, b, "srv:///shop.test", func() { time.Sleep(10 * time.Minute) })
			for address := range strings.SplitSeq(step.want, "+") {
				if !strings.Contains(got, address) || len(got) != len(step.want) {
					t.Errorf("channel %d saw %s, want %s", i, got, step.want)
				}
			}
		}
	})
}

// A DNS server fails for A records and has no AAAA records. The channel must not get an update.
func TestHalfAnAnswerOfANameServer(t *testing.T) {
	dns := startDNS(t)
	set(dns, shop, "0 0 1 a")
	dns.Set("a.test", "AAAA", "::1")
	c, _ := build(t, dns, "srv://DNS/shop.test.?refresh=1s&removeAfter=1")
	if got := c.next(t); len(got) != len("127.0.0.1:1+[::1]:1") {
		t.Fatalf("the channel received %s, want both addresses", got)
	}
	dns.SetAnswer("a.test", "A", dnstest.Answer{Code: dnsmessage.RCodeServerFailure})
	dns.Await("a.test", "A", 1)
	dns.Await(shop, "SRV", 2) // by its second lookup, the channel has handled the result of the first
	select {
	case line := <-c.lines:
		t.Errorf("the channel received %s, want nothing", line)
	default:
	}
}

func TestRecordWithPort0(t *testing.T) {
	dns := startDNS(t)
	set(dns, shop, "0 0 0 a", "0 0 1 b")
	c, _ := build(t, dns, "srv://DNS/shop.test.")
	c.expect(t, "127.0.0.2:1")
	set(dns, "_none._tcp.shop.test", "0 0 0 a")
	c, _ = build(t, dns, "srv://DNS/_none._tcp.shop.test.")
	c.expect(t, "the record of a.test. has port 0")
}

// With dns=tcp, names must be looked up over TCP only, so that truncated UDP answers have no
// effect.
func TestNameServerThatCutsAnswers(t *testing.T) {
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

// An authority that the user sets must take precedence over the names in records (verify=record).
func TestPinnedAuthorityGoesBeforeTheNamesOfRecords(t *testing.T) {
	dns := startDNS(t)
	set(dns, shop, "0 0 1 a")
	part := "srv://" + dns.Address() + "/shop.test%3Fverify=record"
	alone := strings.Replace(part, "%3F", "?", 1)
	pinned := given.Set("Authority", "pinned.test")
	for about, test := range map[string]struct {
		builder      given.Resolvers
		target, want string
	}{
		"nothing pinned":       {given.Builder(srv.Scheme), alone, "127.0.0.1:1/a.test"},
		"by an option":         {given.Builder(srv.Scheme, pinned), alone, "127.0.0.1:1"},
		"nothing in a list":    {given.Builder(failover.Scheme), "failover:///" + part, "127.0.0.1:1/a.test"},
		"by a list":            {given.Builder(failover.Scheme), "failover:///" + part + "?authority=pinned.test", "127.0.0.1:1"},
		"by an option of it":   {given.Builder(failover.Scheme, pinned), "failover:///" + part, "127.0.0.1:1"},
		"by the part's option": {given.Builder(failover.Scheme, given.Sources(failover.WithResolvers(given.Builder(srv.Scheme, pinned)))), "failover:///" + part, "127.0.0.1:1/pinned.test"},
	} {
		c := channel{lines: make(chan string, 1000)}
		r, err := test.builder.Build(target(test.target), c, resolver.BuildOptions{})
		if err != nil {
			t.Fatalf("%s: %v", about, err)
		}
		t.Cleanup(r.Close)
		if got := c.next(t); got != test.want {
			t.Errorf("%s: %s, want %s", about, got, test.want)
		}
	}
}
