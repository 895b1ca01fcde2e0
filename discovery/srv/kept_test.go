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
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/xnet"
)

// hosts is a DNS server for synctest bubbles, with SRV records for the hosts a and b. The value of
// each host is an address, "gone" if the name does not exist, "" if its lookups fail, or "half" if
// only its IPv4 lookups fail.
type hosts struct {
	mu   sync.Mutex
	a, b string
	lost bool
}

func (h *hosts) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost {
		return "", nil, &net.DNSError{Name: "shop.test.", Err: "server misbehaving", IsTemporary: true}
	}
	return "", []*net.SRV{{Target: "a.", Port: 1}, {Target: "b.", Port: 1}}, nil
}

func (h *hosts) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
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

func (h *hosts) set(a, b string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.a, h.b = a, b
}

func (h *hosts) lose(lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = lost
}

func (h *hosts) builder() given.Resolvers {
	return given.Builder(srv.Scheme, given.Sources(discovery.OwnOption(func(o *xnet.LookupOptions) { o.Resolver = h })))
}

func seen(t *testing.T, b given.Resolvers, text string, during func()) string {
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

// After a channel was idle, a host cannot be looked up. It must keep its addresses until an hour
// after its last good lookup. Other hosts must have their current addresses.
func TestHostThatCannotBeLookedUpAfterIdleness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hosts{}
		b := h.builder()
		for i, step := range []struct {
			a, b  string
			awake time.Duration
			want  string
			idle  time.Duration
		}{
			{"10.0.0.1", "10.0.0.2", 3 * time.Hour, "10.0.0.1:1 10.0.0.2:1", 50 * time.Minute},
			{"10.0.0.3", "", time.Minute, "10.0.0.3:1 10.0.0.2:1", 5 * time.Minute},
			{"", "", time.Minute, "10.0.0.3:1 10.0.0.2:1", 0},
			{"10.0.0.3", "", time.Minute, "10.0.0.3:1 10.0.0.2:1", 5 * time.Minute},
			// Using stored addresses must not confirm them.
			{"10.0.0.3", "", time.Minute, "10.0.0.3:1", 0},
			{"10.0.0.3", "10.0.0.2", time.Minute, "10.0.0.3:1 10.0.0.2:1", 0},
			// While the lookups of a host fail, its addresses must not count as confirmed, even if the
			// channel is in use.
			{"", "10.0.0.4", 2 * time.Hour, "10.0.0.3:1 10.0.0.4:1", time.Minute},
			{"", "10.0.0.4", time.Minute, "10.0.0.4:1", 0},
			{"10.0.0.3", "10.0.0.4", time.Minute, "10.0.0.3:1 10.0.0.4:1", 0},
			{"10.0.0.3", "", time.Minute, "10.0.0.3:1 10.0.0.4:1", 0},
			{"10.0.0.3", "gone", time.Minute, "10.0.0.3:1", 0},
		} {
			h.set(step.a, step.b)
			if got := seen(t, b, "srv:///shop.test", func() { time.Sleep(step.awake) }); got != step.want {
				t.Errorf("channel %d saw %s, want %s", i, got, step.want)
			}
			time.Sleep(step.idle)
		}
	})
}

// The lookups of one address family of a host fail, so the host is not confirmed. After the channel
// was idle, its addresses must be used only until an hour after its last complete lookup.
func TestALostHostIsNotConfirmed(t *testing.T) {
	for _, lost := range []string{"", "half"} {
		synctest.Test(t, func(t *testing.T) {
			h := &hosts{a: "10.0.0.1", b: "10.0.0.2"}
			b := h.builder()
			got := seen(t, b, "srv:///shop.test", func() {
				time.Sleep(time.Minute)
				h.set("10.0.0.1", lost)
				time.Sleep(2 * time.Hour)
			})
			if want := "10.0.0.1:1 10.0.0.2:1"; got != want {
				t.Errorf("%q: the channel saw %s, want %s: what was known stays", lost, got, want)
			}
			got = seen(t, b, "srv:///shop.test", func() { time.Sleep(time.Minute) })
			if want := "10.0.0.1:1"; got != want {
				t.Errorf("%q: the next channel saw %s, want %s", lost, got, want)
			}
		})
	}
}

// If the lookup of the SRV records fails, the addresses of their hosts must still expire.
func TestLostRecordsConfirmNoHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hosts{a: "10.0.0.1", b: "10.0.0.2"}
		b := h.builder()
		got := seen(t, b, "srv:///shop.test", func() {
			time.Sleep(time.Minute)
			h.lose(true)
			time.Sleep(2 * time.Hour)
			h.lose(false)
			h.set("10.0.0.1", "")
			time.Sleep(10 * time.Minute)
		})
		if want := "10.0.0.1:1 10.0.0.2:1"; got != want {
			t.Errorf("the channel saw %s, want %s: what was known stays", got, want)
		}
		got = seen(t, b, "srv:///shop.test", func() { time.Sleep(time.Minute) })
		if want := "10.0.0.1:1"; got != want {
			t.Errorf("the next channel saw %s, want %s", got, want)
		}
	})
}

// A host that no longer exists must stay in use for some lookups (removeAfter), but not after the
// channel was idle.
func TestHostThatIsGoneDoesNotComeBackAfterIdleness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ten = "srv:///shop.test?removeAfter=10"
		h := &hosts{}
		b := h.builder()
		h.set("10.0.0.1", "10.0.0.2")
		got := seen(t, b, ten, func() {
			time.Sleep(10 * time.Minute)
			h.set("10.0.0.1", "gone")
			time.Sleep(3 * time.Minute)
		})
		if want := "10.0.0.1:1 10.0.0.2:1"; got != want {
			t.Errorf("the channel saw %s, want %s", got, want)
		}
		h.set("10.0.0.1", "")
		got = seen(t, b, ten, func() { time.Sleep(10 * time.Minute) })
		if want := "10.0.0.1:1"; got != want {
			t.Errorf("the next channel saw %s, want %s", got, want)
		}
	})
}

type silent struct{ *hosts }

func (s silent) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if host == "b." {
		<-ctx.Done()
		return nil, fmt.Errorf("lookup b: %w", ctx.Err())
	}
	return s.hosts.LookupNetIP(ctx, network, host)
}

// After a channel was idle, a host does not respond. It may delay the others only briefly. Until
// then, all stored addresses must be used; afterwards, only those of the silent host.
func TestHostThatIsSilentAfterIdleness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hosts{a: "10.0.0.1", b: "10.0.0.2"}
		var by xnet.Resolver = h
		b := given.Builder(srv.Scheme, given.Sources(discovery.OwnOption(func(o *xnet.LookupOptions) { o.Resolver = by })))
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
			by = silent{h}
		}
	})
}
