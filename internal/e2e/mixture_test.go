package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/metadata"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/dnstest"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/testlog"
)

var logged = testlog.Capture()

const retryConfig = `{"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":5,"initialBackoff":"0.05s","maxBackoff":"1s",
	"backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}]}`

type backendProcess struct {
	name, address string
	kill          func()
	process       *os.Process
}

func (b *backendProcess) start(t *testing.T) {
	t.Helper()
	command, stdout := startSelf(t, "backend", nameVariable+"="+b.name, addressVariable+"="+b.address)
	line, err := stdout.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	b.address = strings.TrimSpace(line)
	b.process = command.Process
	b.kill = func() { command.Process.Kill() }
}

func (b *backendProcess) port() string { return b.address[strings.LastIndex(b.address, ":")+1:] }

func startBackendProcess(t *testing.T, name string) *backendProcess {
	t.Helper()
	b := &backendProcess{name: name, address: given.Address(t)}
	b.start(t)
	return b
}

func startDNS(t *testing.T) *dnstest.Server {
	t.Helper()
	dns := dnstest.Start()
	t.Cleanup(dns.Stop)
	return dns
}

// callContinuously makes wait-for-ready calls until stop is called. Failures after the response
// headers do not count, because clients must not retry such calls (gRFC A6).
func callContinuously(t *testing.T, cc *grpc.ClientConn) (stop func() (calls, failures int64)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	var calls, failures atomic.Int64
	for range 4 {
		callers.Go(func() {
			for tick := time.Tick(pace); ctx.Err() == nil; <-tick {
				var headers metadata.MD
				_, err := who(ctx, cc, grpc.WaitForReady(true), grpc.Header(&headers))
				if ctx.Err() != nil || err != nil && len(headers) > 0 {
					continue
				}
				calls.Add(1)
				if err != nil {
					failures.Add(1)
					t.Errorf("wait-for-ready call: %v", err)
				}
			}
		})
	}
	return func() (int64, int64) {
		cancel()
		callers.Wait()
		return calls.Load(), failures.Load()
	}
}

// A target lists EDS, SRV records and plain DNS, as in gRFC A37. The backend from EDS fails, and
// then the backend from SRV records. After that, the backend from SRV records recovers, and then
// the backend from EDS.
func TestMixedSourcesFailOverAndBack(t *testing.T) {
	t.Parallel()
	edsBackend, srvBackend, dnsBackend := startBackendProcess(t, "eds"), startBackendProcess(t, "srv"), startBackendProcess(t, "dns")
	dns := startDNS(t)
	dns.Set("host.test", "A", "127.0.0.1")
	dns.Set("backup.test", "A", "127.0.0.1")
	dns.Set("_grpc._tcp.checkout.test", "SRV", "10 1 "+srvBackend.port()+" host.test.")
	manager := startManager(t, func(s *adstest.Stream) error {
		if err := s.Respond("1", "n", adstest.Cluster("checkout", edsBackend.address)); err != nil {
			return err
		}
		return s.Drain()
	})
	entries := []string{"eds://" + manager + "/checkout", "srv://" + dns.Address() + "/checkout.test?refresh=5s", "dns://" + dns.Address() + "/backup.test:" + dnsBackend.port()}
	target := "failover:///" + strings.ReplaceAll(strings.Join(entries, ","), "?", "%3F")
	cc := newClient(t, target, given.Dial(given.Set("ServiceConfig", retryConfig)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: time.Second, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second}}))
	ctx := timeoutContext(t, 150*time.Second)
	awaitName(ctx, t, cc, "eds")
	logged.Wait(t, eventTimeout, "failover:///eds://"+manager, "3 endpoints in 3 priorities")
	stop := callContinuously(t, cc)

	edsBackend.kill()
	awaitName(ctx, t, cc, "srv")
	srvBackend.kill()
	awaitName(ctx, t, cc, "dns")
	// While the endpoints of EDS fail, the channel must not look up backup.test again. gRPC's own
	// DNS resolver would do so 30 s after the first lookup. To find out whether ours does, the test
	// must wait for more than 30 s. It does not sleep, but waits for enough lookups of SRV records.
	const lookups = 8 // lookups of SRV records, at least 4.5 s apart
	if done := dns.Asked("_grpc._tcp.checkout.test", "SRV"); done < lookups {
		dns.Await("_grpc._tcp.checkout.test", "SRV", lookups-done)
	}
	if got := dns.Asked("backup.test", "A"); got != 1 {
		t.Errorf("backup.test was looked up %d times, want once", got)
	}
	srvBackend.start(t)
	awaitName(ctx, t, cc, "srv")
	edsBackend.start(t)
	awaitName(ctx, t, cc, "eds")

	if calls, failures := stop(); failures > 0 || calls < 100 {
		t.Errorf("%d of %d wait-for-ready calls failed", failures, calls)
	}
	for _, change := range []struct {
		what     string
		from, to int
	}{{"failover", 0, 1}, {"failover", 1, 2}, {"failback", 2, 1}, {"failback", 1, 0}} {
		from, to := fmt.Sprintf(" from p%d %s", change.from, entries[change.from]), fmt.Sprintf(" to p%d %s", change.to, entries[change.to])
		if n := logged.Count("priority: ", change.what+from, to); n != 1 {
			t.Errorf("%d log lines about the %s from %s to %s, want one", n, change.what, entries[change.from], entries[change.to])
		}
	}
	if n := logged.Count("priority: failover:///eds://"+manager, " from p", ", which is "); n != 4 {
		t.Errorf("%d log lines about changes of priority, want 4", n)
	}
}

// An entry of the target that fails does not affect the others. Its error names the entry.
func TestFailingEntriesDoNotAffectOthers(t *testing.T) {
	t.Parallel()
	good := startServer(t, "good", nil)
	dns := startDNS(t)
	dns.SetAnswer("_grpc._tcp.broken.test", "SRV", dnstest.Answer{Code: dnsmessage.RCodeServerFailure})
	dns.SetAnswer("_grpc._tcp.silent.test", "SRV", dnstest.Answer{Silent: true})
	dns.Set("_grpc._tcp.loop.test", "SRV", "CNAME _grpc._tcp.loop.test.")
	dns.Set("_grpc._tcp.none.test", "SRV", "0 0 0 .")
	dns.Set("good.test", "A", "127.0.0.1")
	var entries []string
	for _, name := range []string{"gone", "broken", "silent", "loop", "none"} {
		entries = append(entries, fmt.Sprintf("srv://%s/%s.test.", dns.Address(), name))
	}
	entries = append(entries, "dns://"+dns.Address()+"/gone.test:1", "eds://"+given.Address(t)+"/shop", "file:///no/such/file.yaml",
		fmt.Sprintf("dns://%s/good.test:%s", dns.Address(), good.address[strings.LastIndex(good.address, ":")+1:]))
	cc := newClient(t, "failover:///"+strings.Join(entries, ",")+"?failoverTimeout=2s")
	awaitName(timeoutContext(t, eventTimeout), t, cc, "good")
	for i, want := range []string{
		"no such host", "server misbehaving", "i/o timeout", "no such host", "",
		"its resolver returned no addresses", "connection refused", "no such file",
	} {
		if want != "" {
			logged.Wait(t, eventTimeout, "failover: "+entries[i]+": ", want)
		}
	}
	logged.Wait(t, eventTimeout, "the SRV records of _grpc._tcp.none.test. name no server: no calls can be made")
}

func TestBackendAddedToNameIsUsed(t *testing.T) {
	t.Parallel()
	const refresh = 2 * time.Second
	first := startServer(t, "first", nil)
	port := first.address[strings.LastIndex(first.address, ":")+1:]
	dns := startDNS(t)
	dns.Set("shop.test", "A", "127.0.0.1")
	cc := newClient(t, fmt.Sprintf("failover:///dns://%s/shop.test:%s?refresh=%v", dns.Address(), port, refresh))
	ctx := timeoutContext(t, eventTimeout)
	awaitName(ctx, t, cc, "first")
	startServerOn(t, "second", "127.0.0.2:"+port, nil)
	dns.Set("shop.test", "A", "127.0.0.2", "127.0.0.1")
	added := time.Now()
	stop := callContinuously(t, cc)
	awaitName(ctx, t, cc, "second")
	// The limit is generous, because the machine may be busy. TestBackendIsAddedAndRemoved
	// checks the exact time.
	if elapsed, limit := time.Since(added), refresh*11/10+15*time.Second; elapsed > limit {
		t.Errorf("the second backend was used after %v, want %v at most", elapsed, limit)
	}
	if calls, failures := stop(); failures > 0 || calls == 0 {
		t.Errorf("%d of %d calls failed", failures, calls)
	}
	counts := make(map[string]int)
	for range 100 {
		a, err := who(ctx, cc)
		if err != nil {
			t.Fatal(err)
		}
		counts[a.name]++
	}
	if counts["second"] < 45 || counts["first"] < 45 {
		t.Errorf("of 100 calls the backends answer %v, want half each", counts)
	}
	// A removed backend stays in use until two answers in a row lack it.
	dns.Set("shop.test", "A", "127.0.0.2")
	dns.Await("shop.test", "A", 1)
	if a, b := answeringBackends(ctx, t, cc); !a || !b {
		t.Error("a backend is no longer used after one answer without it")
	}
	dns.Await("shop.test", "A", 2)
	for a := true; a; a, _ = answeringBackends(ctx, t, cc) {
	}
}

func answeringBackends(ctx context.Context, t *testing.T, cc *grpc.ClientConn) (first, second bool) {
	t.Helper()
	for range 4 {
		a, err := who(ctx, cc)
		if err != nil {
			t.Fatal(err)
		}
		first, second = first || a.name == "first", second || a.name == "second"
	}
	return first, second
}
