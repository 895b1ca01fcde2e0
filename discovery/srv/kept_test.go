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

// fakeDNS is a DNS server for synctest bubbles, with an SRV record for each of its hosts.
type fakeDNS struct {
	hosts []string

	mu          sync.Mutex
	results     map[string]string // see set
	recordsFail bool
}

// set sets the result of a host such as "a.", or of one of its families, as in "a. ip4". The result
// is an address, "none" if the name does not exist, or "" if the lookup fails.
func (d *fakeDNS) set(results map[string]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.results = results
}

func (d *fakeDNS) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.recordsFail {
		return "", nil, &net.DNSError{Name: "shop.test.", Err: "server misbehaving", IsTemporary: true}
	}
	var records []*net.SRV
	for _, host := range d.hosts {
		records = append(records, &net.SRV{Target: host, Port: 1})
	}
	return "", records, nil
}

func (d *fakeDNS) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	result, ofFamily := d.results[host+" "+network]
	if !ofFamily {
		result = d.results[host]
	}
	switch result {
	case "":
		return nil, &net.DNSError{Name: host, Err: "server misbehaving", IsTemporary: true}
	case "none":
		return nil, &net.DNSError{Name: host, Err: "no such host", IsNotFound: true}
	default:
		return []netip.Addr{netip.MustParseAddr(result)}, nil
	}
}

func (d *fakeDNS) builder() given.Resolvers {
	return given.Builder(srv.Scheme, given.Sources(discovery.OwnOption(func(o *xnet.LookupOptions) { o.Resolver = d })))
}

type twoHostDNS struct{ *fakeDNS }

func newTwoHostDNS(a, b string) twoHostDNS {
	h := twoHostDNS{&fakeDNS{hosts: []string{"a.", "b."}}}
	h.set(a, b)
	return h
}

func (h twoHostDNS) set(a, b string) { h.fakeDNS.set(map[string]string{"a.": a, "b.": b}) }

func (h twoHostDNS) setRecordsFail(recordsFail bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recordsFail = recordsFail
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
		h := newTwoHostDNS("", "")
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
			{"10.0.0.3", "none", time.Minute, "10.0.0.3:1", 0},
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
	for about, results := range map[string]map[string]string{
		"both": {"a.": "10.0.0.1"}, "IPv4": {"a.": "10.0.0.1", "b. ip6": "none"},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newTwoHostDNS("10.0.0.1", "10.0.0.2")
			b := h.builder()
			got := statesOf(t, b, "srv:///shop.test", func() {
				time.Sleep(time.Minute)
				h.fakeDNS.set(results)
				time.Sleep(2 * time.Hour)
			})
			if want := "10.0.0.1:1 10.0.0.2:1"; got != want {
				t.Errorf("%s: the channel saw %s, want %s: what was known stays", about, got, want)
			}
			got = statesOf(t, b, "srv:///shop.test", func() { time.Sleep(time.Minute) })
			if want := "10.0.0.1:1"; got != want {
				t.Errorf("%s: the next channel saw %s, want %s", about, got, want)
			}
		})
	}
}

// While the lookups of the SRV records fail, the addresses of their hosts must not count as
// confirmed.
func TestFailedRecordLookupDoesNotConfirmHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTwoHostDNS("10.0.0.1", "10.0.0.2")
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
		h := newTwoHostDNS("", "")
		b := h.builder()
		h.set("10.0.0.1", "10.0.0.2")
		got := statesOf(t, b, withRemoveAfter, func() {
			time.Sleep(10 * time.Minute)
			h.set("10.0.0.1", "none")
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

type silentHostDNS struct{ twoHostDNS }

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
		h := newTwoHostDNS("10.0.0.1", "10.0.0.2")
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
