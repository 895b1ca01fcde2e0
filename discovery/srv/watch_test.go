package srv

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/net/xnet"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

type nameServer struct {
	mu      sync.Mutex
	start   time.Time
	lookups []time.Duration
	err     error
	latency time.Duration
}

func (n *nameServer) LookupSRV(ctx context.Context, _, _, _ string) (string, []*net.SRV, error) {
	n.mu.Lock()
	n.lookups = append(n.lookups, time.Since(n.start))
	err := n.err
	n.mu.Unlock()
	select {
	case <-time.After(n.latency):
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return "", nil, err
	}
	return "", []*net.SRV{{Target: "a.", Port: 1}}, nil
}

func (*nameServer) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
}

// A request must cause a lookup 30 s after the last lookup, or after the interval if that is
// shorter. After Close, there must be no lookup.
func TestReresolution(t *testing.T) {
	for _, test := range []struct{ every, apart time.Duration }{
		{0, 30 * time.Second}, {10 * time.Minute, 30 * time.Second}, {2 * time.Second, 1800 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := &nameServer{start: time.Now()}
			w, err := source{"_grpc._tcp.x", n, discovery.Refresh{Every: test.every, RemoveAfter: 2}, ""}.Start(flat.Receiver(&updateLog{}))
			if err != nil {
				t.Fatal(err)
			}
			for time.Since(n.start) < 10*time.Minute {
				w.ResolveNow()
				time.Sleep(100 * time.Millisecond)
			}
			w.Close()
			synctest.Wait()
			lookups := n.lookups
			time.Sleep(time.Hour)
			if len(n.lookups) != len(lookups) || len(lookups) < 10 {
				t.Errorf("every %v: %d lookups, and %d after Close", test.every, len(lookups), len(n.lookups)-len(lookups))
			}
			for i := range lookups[1:] {
				if apart := lookups[i+1] - lookups[i]; apart < test.apart || apart > 2*test.apart {
					t.Errorf("every %v: lookup %d came %v after the previous one, want about %v", test.every, i+1, apart, test.apart)
				}
			}
		})
	}
}

type slowHostDNS struct {
	delay     time.Duration
	addresses []netip.Addr
}

func (slowHostDNS) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	return "", []*net.SRV{{Target: "good.", Port: 1}, {Target: "slow.", Port: 1}}, nil
}

func (s slowHostDNS) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	if host == "good." {
		return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
	}
	select {
	case <-time.After(s.delay):
	case <-ctx.Done():
	}
	if s.addresses == nil {
		return nil, &net.DNSError{Name: host, Err: "i/o timeout", IsTimeout: true}
	}
	return s.addresses, nil
}

type updateLog struct {
	discovery.Receiver
	start    time.Time
	mu       sync.Mutex
	lines    []string
	lastLine string
}

func (r *updateLog) Update(a discovery.Answer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if line := formatAnswer(a); line != r.lastLine {
		r.lines, r.lastLine = append(r.lines, fmt.Sprint(time.Since(r.start), " ", line)), line
	}
	return nil
}

func (*updateLog) Fail(error) {}

// A host that does not respond must not delay the answer for more than 5 s.
func TestSilentHostDoesNotDelayOthers(t *testing.T) {
	lateHost := slowHostDNS{9 * time.Second, []netip.Addr{netip.MustParseAddr("10.0.0.2")}}
	for name, test := range map[string]struct {
		host slowHostDNS
		want []string
	}{
		"never": {slowHostDNS{time.Hour, nil}, []string{"5s 0: 10.0.0.1:1*1"}},
		"late":  {lateHost, []string{"5s 0: 10.0.0.1:1*1", "9s 0: 10.0.0.1:1*1 10.0.0.2:1*1"}},
		"soon":  {slowHostDNS{4 * time.Second, lateHost.addresses}, []string{"4s 0: 10.0.0.1:1*1 10.0.0.2:1*1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := updatesOf(t, test.host, 0, time.Minute); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", test.want) {
				t.Errorf("answers: %q, want %q", got, test.want)
			}
		})
	}
	for i, line := range updatesOf(t, lateHost, time.Second, 10*time.Minute) {
		if i > 0 && !strings.HasSuffix(line, " 0: 10.0.0.1:1*1 10.0.0.2:1*1") {
			t.Errorf("answer %d: %s, want both", i, line)
		}
	}
}

func updatesOf(t *testing.T, host xnet.Resolver, every, d time.Duration) (lines []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &updateLog{start: time.Now()}
		w, err := source{"_grpc._tcp.x", host, discovery.Refresh{Every: every, RemoveAfter: 2}, ""}.Start(flat.Receiver(r))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(d)
		w.Close()
		time.Sleep(time.Second)
		synctest.Wait()
		lines = r.lines
	})
	return lines
}

type movingHostDNS struct {
	slowHostDNS
	lookups atomic.Int64
}

func (m *movingHostDNS) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if host == "good." && network == "ip6" {
		return nil, &net.DNSError{Name: host, Err: "no such host", IsNotFound: true}
	}
	if host == "good." && m.lookups.Add(1) > 1 {
		return []netip.Addr{netip.MustParseAddr("10.0.0.3")}, nil
	}
	return m.slowHostDNS.LookupNetIP(ctx, network, host)
}

// A lookup that sends incomplete results before the complete result must count only once: an
// address must be removed after two lookups without it, and not after two such results.
func TestSlowLookupCountsOnce(t *testing.T) {
	m := &movingHostDNS{slowHostDNS: slowHostDNS{9 * time.Second, []netip.Addr{netip.MustParseAddr("10.0.0.2")}}}
	got := updatesOf(t, m, time.Second, 40*time.Second)
	for i, want := range []string{
		"0: 10.0.0.1:1*1", "0: 10.0.0.1:1*1 10.0.0.2:1*1", // from the first lookup
		"0: 10.0.0.1:1*1 10.0.0.3:1*1 10.0.0.2:1*2", "0: 10.0.0.3:1*1 10.0.0.2:1*1",
	} {
		if i >= len(got) || !strings.HasSuffix(got[i], "s "+want) {
			t.Fatalf("answers: %q, want number %d to be %s", got, i, want)
		}
	}
	at, _, _ := strings.Cut(got[3], " ")
	if left, err := time.ParseDuration(at); err != nil || left < 2*9*time.Second+time.Second {
		t.Errorf("the address was removed after %v, %v, want a time of the third lookup", left, err)
	}
}
