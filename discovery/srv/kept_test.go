package srv_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/srv"
	"github.com/understudy-lb/understudy/internal/net/xnet"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// twoHostDNS is a DNS server for synctest bubbles, with SRV records for the hosts a and b. The
// value of each host is an address, "gone" if the name does not exist, "" if its lookups fail, or
// "half" if only its IPv4 lookup fails.
type twoHostDNS struct {
	mu          sync.Mutex
	a, b        string
	recordsFail bool
}

func (h *twoHostDNS) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.recordsFail {
		return "", nil, &net.DNSError{Name: "shop.test.", Err: "server misbehaving", IsTemporary: true}
	}
	return "", []*net.SRV{{Target: "a.", Port: 1}, {Target: "b.", Port: 1}}, nil
}

func (h *twoHostDNS) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	address := h.a
	if host == "b." {
		address = h.b
	}
	if address == "half" {
		address = map[string]string{"ip4": "", "ip6": "gone"}[network]
	}
	switch address {
	case "":
		return nil, &net.DNSError{Name: host, Err: "server misbehaving", IsTemporary: true}
	case "gone":
		return nil, &net.DNSError{Name: host, Err: "no such host", IsNotFound: true}
	default:
		return []netip.Addr{netip.MustParseAddr(address)}, nil
	}
}

func (h *twoHostDNS) set(a, b string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.a, h.b = a, b
}

func (h *twoHostDNS) setRecordsFail(recordsFail bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recordsFail = recordsFail
}

func (h *twoHostDNS) builder() given.Resolvers {
	return given.Builder(srv.Scheme, given.Sources(discovery.OwnOption(func(o *xnet.LookupOptions) { o.Resolver = h })))
}

func statesOf(t *testing.T, b given.Resolvers, text string, during func()) string {
	t.Helper()
	c := channel{lines: make(chan string, 1000)}
	r, err := b.Build(target(text), c, resolver.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	during()
	r.Close()
	synctest.Wait()
	close(c.lines)
	var lines []string
	for line := range c.lines {
		lines = append(lines, line)
	}
	return strings.Join(lines, ", then ")
}

// If a host cannot be looked up after the channel was idle, it must keep its addresses until an
// hour after its last successful lookup. Other hosts must have their current addresses.
func TestHostLookupFailsAfterIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &twoHostDNS{}
		b := h.builder()
		for i, step := range []struct {
			a, b   string
			active time.Duration
			want   string
			idle   time.Duration
		}{
			{"10.0.0.1", "10.0.0.2", 3 * time.Hour, "10.0.0.1:1 10.0.0.2:1", 50 * time.Minute},
			{"10.0.0.3", "", time.Minute, "10.0.0.3:1 10.0.0.2:1", 5 * time.Minute},
			{"", "", time.Minute, "10.0.0.3:1 10.0.0.2:1", 0},
			{"10.0.0.3", "", time.Minute, "10.0.0.3:1 10.0.0.2:1", 5 * time.Minute},
			// The use of stored addresses must not confirm them.
			{"10.0.0.3", "", time.Minute, "10.0.0.3:1", 0},
			{"10.0.0.3", "10.0.0.2", time.Minute, "10.0.0.3:1 10.0.0.2:1", 0},
			// While the lookups of a host fail, its addresses must not count as confirmed, even if
			// the channel is in use.
			{"", "10.0.0.4", 2 * time.Hour, "10.0.0.3:1 10.0.0.4:1", time.Minute},
			{"", "10.0.0.4", time.Minute, "10.0.0.4:1", 0},
			{"10.0.0.3", "10.0.0.4", time.Minute, "10.0.0.3:1 10.0.0.4:1", 0},
			{"10.0.0.3", "", time.Minute, "10.0.0.3:1 10.0.0.4:1", 0},
			{"10.0.0.3", "gone", time.Minute, "10.0.0.3:1", 0},
		} {
			h.set(step.a, step.b)
			if got := statesOf(t, b, "srv:///shop.test", func() { time.Sleep(step.active) }); got != step.want {
				t.Errorf("channel %d saw %s, want %s", i, got, step.want)
			}
			time.Sleep(step.idle)
		}
	})
}

// While the lookups of an address family fail, the host must not count as confirmed. After the
// channel was idle, the host's addresses must be used only until an hour after its last complete
// lookup.
func TestFailedLookupDoesNotConfirmHost(t *testing.T) {
	for _, result := range []string{"", "half"} {
		synctest.Test(t, func(t *testing.T) {
			h := &twoHostDNS{a: "10.0.0.1", b: "10.0.0.2"}
			b := h.builder()
			got := statesOf(t, b, "srv:///shop.test", func() {
				time.Sleep(time.Minute)
				h.set("10.0.0.1", result)
				time.Sleep(2 * time.Hour)
			})
			if want := "10.0.0.1:1 10.0.0.2:1"; got != want {
				t.Errorf("%q: the channel saw %s, want %s: what was known stays", result, got, want)
			}
			got = statesOf(t, b, "srv:///shop.test", func() { time.Sleep(time.Minute) })
			if want := "10.0.0.1:1"; got != want {
				t.Errorf("%q: the next channel saw %s, want %s", result, got, want)
			}
		})
	}
}

// While the lookups of the SRV records fail, the addresses of their hosts must not count as
// confirmed.
func TestFailedRecordLookupDoesNotConfirmHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &twoHostDNS{a: "10.0.0.1", b: "10.0.0.2"}
		b := h.builder()
		got := statesOf(t, b, "srv:///shop.test", func() {
			time.Sleep(time.Minute)
			h.setRecordsFail(true)
			time.Sleep(2 * time.Hour)
			h.setRecordsFail(false)
			h.set("10.0.0.1", "")
			time.Sleep(10 * time.Minute)
		})
		if want := "10.0.0.1:1 10.0.0.2:1"; got != want {
			t.Errorf("the channel saw %s, want %s: what was known stays", got, want)
		}
		got = statesOf(t, b, "srv:///shop.test", func() { time.Sleep(time.Minute) })
		if want := "10.0.0.1:1"; got != want {
			t.Errorf("the next channel saw %s, want %s", got, want)
		}
	})
}

// A host that no longer exists must stay in use for some lookups (removeAfter), but not after the
// channel was idle.
func TestRemovedHostIsNotRestoredAfterIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const withRemoveAfter = "srv:///shop.test?removeAfter=10"
		h := &twoHostDNS{}
		b := h.builder()
		h.set("10.0.0.1", "10.0.0.2")
		got := statesOf(t, b, withRemoveAfter, func() {
			time.Sleep(10 * time.Minute)
			h.set("10.0.0.1", "gone")
			time.Sleep(3 * time.Minute)
		})
		if want := "10.0.0.1:1 10.0.0.2:1"; got != want {
			t.Errorf("the channel saw %s, want %s", got, want)
		}
		h.set("10.0.0.1", "")
		got = statesOf(t, b, withRemoveAfter, func() { time.Sleep(10 * time.Minute) })
		if want := "10.0.0.1:1"; got != want {
			t.Errorf("the next channel saw %s, want %s", got, want)
		}
	})
}

type silentHostDNS struct{ *twoHostDNS }

func (s silentHostDNS) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if host == "b." {
		<-ctx.Done()
		return nil, fmt.Errorf("lookup b: %w", ctx.Err())
	}
	return s.twoHostDNS.LookupNetIP(ctx, network, host)
}

// A host does not respond after the channel was idle. After 5 s, the channel must get the current
// addresses of the other hosts and the stored addresses of the silent host. Before that, it must
// use only stored addresses.
func TestSilentHostAfterIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &twoHostDNS{a: "10.0.0.1", b: "10.0.0.2"}
		var dnsResolver xnet.Resolver = h
		b := given.Builder(srv.Scheme, given.Sources(discovery.OwnOption(func(o *xnet.LookupOptions) { o.Resolver = dnsResolver })))
		const both = "10.0.0.1:1 10.0.0.2:1"
		for _, states := range [][]string{{both}, {both, "10.0.0.3:1 10.0.0.2:1"}} {
			c := channel{lines: make(chan string, 1000)}
			r, err := b.Build(target("srv:///shop.test"), c, resolver.BuildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(6 * time.Second)
			for _, want := range states {
				c.expect(t, want)
			}
			time.Sleep(time.Minute)
			r.Close()
			synctest.Wait()
			if len(c.lines) > 0 {
				t.Errorf("the channel also received %s", c.next(t))
			}
			h.set("10.0.0.3", "")
			dnsResolver = silentHostDNS{h}
		}
	})
}
