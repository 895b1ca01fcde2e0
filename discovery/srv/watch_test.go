package srv

import (
	"context"
	"errors"
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
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/xnet"
)

type nameServer struct {
	mu      sync.Mutex
	began   time.Time
	lookups []time.Duration
	err     error
	took    time.Duration
}

func (n *nameServer) LookupSRV(ctx context.Context, _, _, _ string) (string, []*net.SRV, error) {
	n.mu.Lock()
	n.lookups = append(n.lookups, time.Since(n.began))
	err := n.err
	n.mu.Unlock()
	select {
	case <-time.After(n.took):
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

type receiver struct {
	discovery.Receiver
	mu             sync.Mutex
	answers, fails int
	refusal        error
}

func (r *receiver) Update(discovery.Answer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers++
	return r.refusal
}

func (r *receiver) Fail(error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails++
}

// watched runs a source in a synctest bubble for the time d. If asked is set, it requests a
// re-resolution every 100 ms.
func watched(t *testing.T, n *nameServer, every time.Duration, asked bool, d time.Duration) (r *receiver, lookups []time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n.began, r = time.Now(), &receiver{}
		w, err := source{"_grpc._tcp.x", n, discovery.Refresh{Every: every, RemoveAfter: 2}}.Start(flat.Receiver(r))
		if err != nil {
			t.Fatal(err)
		}
		for until := n.began.Add(d); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
			if asked {
				w.ResolveNow()
			}
		}
		w.Close()
		synctest.Wait()
		lookups = n.lookups
		time.Sleep(time.Hour)
		if len(n.lookups) != len(lookups) {
			t.Errorf("looked up after Close")
		}
	})
	return r, lookups
}

// Without requests, there must be one lookup per interval. Without an interval, there must be only
// one lookup.
func TestLooksUpAtTheInterval(t *testing.T) {
	for _, every := range []time.Duration{time.Second, 30 * time.Second, 10 * time.Minute} {
		_, lookups := watched(t, &nameServer{}, every, false, 20*every)
		if n := len(lookups); n < 18 || n > 23 {
			t.Errorf("every %v: %d lookups in 20 times that", every, n)
		}
	}
	if _, lookups := watched(t, &nameServer{}, 0, false, time.Hour); len(lookups) != 1 {
		t.Errorf("without an interval: %d lookups, want 1", len(lookups))
	}
}

// A request must cause a lookup 30 s after the last one or, if that is shorter, after the interval.
func TestRequestsForReresolution(t *testing.T) {
	for _, test := range []struct{ every, apart time.Duration }{
		{0, 30 * time.Second}, {10 * time.Minute, 30 * time.Second}, {2 * time.Second, 1800 * time.Millisecond},
	} {
		_, lookups := watched(t, &nameServer{}, test.every, true, 10*time.Minute)
		for i := range lookups[1:] {
			if apart := lookups[i+1] - lookups[i]; apart < test.apart || apart > 2*test.apart {
				t.Errorf("every %v: lookup %d came %v after the previous one, want about %v", test.every, i+1, apart, test.apart)
			}
		}
	}
}

// After a failed lookup or a refused answer, the next lookup must come after a backoff that is
// never longer than the interval.
func TestBackoffAfterFailures(t *testing.T) {
	for name, of := range map[string]*nameServer{"error": {err: errors.New("no")}, "time-out": {took: time.Hour}} {
		r, lookups := watched(t, of, 30*time.Second, true, 10*time.Minute)
		if r.answers != 0 || r.fails != len(lookups) && r.fails != len(lookups)-1 {
			t.Errorf("%s: %d answers, %d failures of %d lookups", name, r.answers, r.fails, len(lookups))
		}
		for i := range lookups[1:] {
			apart := lookups[i+1] - lookups[i]
			if name == "time-out" {
				apart -= lookupTime
			}
			if apart < 500*time.Millisecond || apart > 33*time.Second {
				t.Errorf("%s: lookup %d came %v after the previous one", name, i+1, apart)
			}
		}
	}
	_, lookups := watched(t, &nameServer{err: errors.New("no")}, 0, false, time.Hour)
	if last := lookups[len(lookups)-1] - lookups[len(lookups)-2]; last < 90*time.Second {
		t.Errorf("without an interval the last two of %d lookups were %v apart, want about 120 s", len(lookups), last)
	}
}

func TestSomeHostsFail(t *testing.T) {
	failing := hostsFunc(func(host string) ([]netip.Addr, error) {
		switch host {
		case "gone.":
			return nil, &net.DNSError{Name: host, Err: "no such host", IsNotFound: true}
		case "slow.":
			return nil, &net.DNSError{Name: host, Err: "i/o timeout", IsTimeout: true}
		}
		return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
	})
	var a answer
	var err error
	synctest.Test(t, func(t *testing.T) { a, _, err = lookUp(t.Context(), failing, "x", nil, nil) })
	if err != nil || a.flaws == nil {
		t.Fatalf("lookUp = %+v, %v, want an answer with flaws", a, err)
	}
	if got := fmt.Sprint(len(a.records), a.hosts["good."].addresses, a.hosts["gone."].addresses, len(a.hosts)); got != "3 [10.0.0.1] [] 2" {
		t.Errorf("found %s, want three records, one address of good, none of gone, nothing of slow", got)
	}
}

type hostsFunc func(string) ([]netip.Addr, error)

func (hostsFunc) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	return "", []*net.SRV{{Target: "good.", Port: 1}, {Target: "gone.", Port: 1}, {Target: "slow.", Port: 1}}, nil
}

func (h hostsFunc) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return h(host)
}

type slow struct {
	after time.Duration
	found []netip.Addr
}

func (slow) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	return "", []*net.SRV{{Target: "good.", Port: 1}, {Target: "slow.", Port: 1}}, nil
}

func (s slow) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	if host == "good." {
		return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
	}
	select {
	case <-time.After(s.after):
	case <-ctx.Done():
	}
	if s.found == nil {
		return nil, &net.DNSError{Name: host, Err: "i/o timeout", IsTimeout: true}
	}
	return s.found, nil
}

type told struct {
	discovery.Receiver
	began time.Time
	mu    sync.Mutex
	lines []string
	last  string
}

func (r *told) Update(a discovery.Answer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if line := shown(a); line != r.last {
		r.lines, r.last = append(r.lines, fmt.Sprint(time.Since(r.began), " ", line)), line
	}
	return nil
}

func (*told) Fail(error) {}

// A host that does not respond must not delay the answer for more than 5 s.
func TestSilentHostLeavesTheOthersAlone(t *testing.T) {
	late := slow{9 * time.Second, []netip.Addr{netip.MustParseAddr("10.0.0.2")}}
	for about, test := range map[string]struct {
		host slow
		want []string
	}{
		"never": {slow{time.Hour, nil}, []string{"5s 0: 10.0.0.1:1*1"}},
		"late":  {late, []string{"5s 0: 10.0.0.1:1*1", "9s 0: 10.0.0.1:1*1 10.0.0.2:1*1"}},
		"soon":  {slow{4 * time.Second, late.found}, []string{"4s 0: 10.0.0.1:1*1 10.0.0.2:1*1"}},
	} {
		t.Run(about, func(t *testing.T) {
			if got := toldOf(t, test.host, 0, time.Minute); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", test.want) {
				t.Errorf("answers: %q, want %q", got, test.want)
			}
		})
	}
	for i, line := range toldOf(t, late, time.Second, 10*time.Minute) {
		if i > 0 && !strings.HasSuffix(line, " 0: 10.0.0.1:1*1 10.0.0.2:1*1") {
			t.Errorf("answer %d: %s, want both", i, line)
		}
	}
}

func toldOf(t *testing.T, host xnet.Resolver, every, d time.Duration) (lines []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &told{began: time.Now()}
		w, err := source{"_grpc._tcp.x", host, discovery.Refresh{Every: every, RemoveAfter: 2}}.Start(flat.Receiver(r))
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

type moving struct {
	slow
	lookups atomic.Int64
}

func (m *moving) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if host == "good." && network == "ip6" {
		return nil, &net.DNSError{Name: host, Err: "no such host", IsNotFound: true}
	}
	if host == "good." && m.lookups.Add(1) > 1 {
		return []netip.Addr{netip.MustParseAddr("10.0.0.3")}, nil
	}
	return m.slow.LookupNetIP(ctx, network, host)
}

// A lookup sends incomplete results before the complete one. It must count as one lookup: an
// address is removed after two lookups without it, not after two results.
func TestSlowLookupCountsOnce(t *testing.T) {
	m := &moving{slow: slow{9 * time.Second, []netip.Addr{netip.MustParseAddr("10.0.0.2")}}}
	got := toldOf(t, m, time.Second, 40*time.Second)
	for i, want := range []string{
		"0: 10.0.0.1:1*1", "0: 10.0.0.1:1*1 10.0.0.2:1*1", // both results come from the first lookup
		"0: 10.0.0.1:1+10.0.0.3:1*1 10.0.0.2:1*1", "0: 10.0.0.3:1*1 10.0.0.2:1*1",
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
