//go:build kubernetes

package kubernetes

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/kubernetes"
)

// channel opens a channel to the pods of a cluster. Its source uses the given account at the API
// server.
func (c *cluster) channel(t *testing.T, target string, account *api) *grpc.ClientConn {
	t.Helper()
	cc, err := understudy.NewClient(target,
		understudy.Options{Sources: []discovery.SourceOption{kubernetes.WithTransport(account.base, account)}},
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(c.dial))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc
}

func call(ctx context.Context, cc *grpc.ClientConn) (string, error) {
	var header metadata.MD
	err := cc.Invoke(ctx, "/web/Get", &emptypb.Empty{}, &emptypb.Empty{}, grpc.WaitForReady(true), grpc.Header(&header))
	if err != nil {
		return "", err
	}
	return header.Get("pod")[0], nil
}

func callOnce(t *testing.T, cc *grpc.ClientConn) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	ip, err := call(ctx, cc)
	if err != nil {
		t.Fatal(err)
	}
	return ip
}

type callResult struct {
	phase string
	began time.Time
	took  time.Duration
	ip    string
	err   error
}

// traffic makes 200 calls per second until stop is called.
type traffic struct {
	mu      sync.Mutex
	phase   string
	calls   []callResult
	recent  map[string]time.Time
	running sync.WaitGroup
	end     chan struct{}
}

func newTraffic(cc *grpc.ClientConn) *traffic {
	const interval = time.Second / 200
	f := &traffic{recent: make(map[string]time.Time), end: make(chan struct{})}
	f.running.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		begin, begun := time.Now(), 0
		for {
			select {
			case <-f.end:
				return
			case <-ticker.C:
			}
			for ; begun < int(time.Since(begin)/interval); begun++ {
				f.running.Go(func() { f.call(cc) })
			}
		}
	})
	return f
}

func (f *traffic) setPhase(phase string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.phase = phase
}

func (f *traffic) call(cc *grpc.ClientConn) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	f.mu.Lock()
	m := callResult{phase: f.phase, began: time.Now()}
	f.mu.Unlock()
	m.ip, m.err = call(ctx, cc)
	m.took = time.Since(m.began)
	f.mu.Lock()
	defer notifyChange()
	defer f.mu.Unlock()
	f.calls = append(f.calls, m)
	f.recent[m.ip] = time.Now()
}

func (f *traffic) waitForCalls(t *testing.T, n int) {
	t.Helper()
	count := func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.calls)
	}
	n += count()
	await(t, "more calls", func() bool { return count() >= n })
}

func (f *traffic) onlyReaches(these map[string]bool, since time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for ip, last := range f.recent {
		if last.After(since) {
			if !these[ip] {
				return false
			}
			n++
		}
	}
	return n == len(these)
}

func (f *traffic) stop() []callResult {
	close(f.end)
	f.running.Wait()
	return f.calls
}

// At 200 calls per second, a Service of 250 endpoints in three slices is scaled, rolled, drained,
// deleted and created again. All wait-for-ready calls must succeed. An endpoint must get no new
// calls when the server has reported for 1 s that it terminates and that another endpoint is
// ready.
func TestServiceOf250(t *testing.T) {
	c := newCluster(t, shared.api, "shop", 1)
	observed := c.observe(t, "web")
	client := shared.account(t, "shop", "client")
	shared.grant(t, "shop", "client")
	cc := c.channel(t, "kubernetes:///web.shop:grpc", client)
	c.deploy(t, "web", 20)
	callOnce(t, cc)
	calls := newTraffic(cc)
	step := func(what string, ready int, do func()) {
		t.Helper()
		calls.setPhase(what)
		began := time.Now()
		do()
		acted := time.Now()
		await(t, what+": the slices have the expected endpoints", func() bool {
			_, n, _ := observed.count()
			return n == ready && len(c.running()) == ready
		})
		settled := time.Now()
		if ready > 0 {
			await(t, what+": calls go to exactly the running pods", func() bool {
				return calls.onlyReaches(c.running(), settled.Add(time.Second)) && time.Since(settled) > 2*time.Second
			})
		}
		n, _, _ := observed.count()
		t.Logf("%s: requested in %v, in %d slices after %v, calls reach all %d after %v", what, acted.Sub(began).Round(time.Millisecond),
			n, settled.Sub(acted).Round(time.Millisecond), ready, time.Since(settled).Round(time.Millisecond))
	}
	step("scaled to 250", 250, func() { c.scale(t, "web", 250) })
	if n, _, _ := observed.count(); n != 3 {
		t.Errorf("250 endpoints are in %d slices, want 3", n)
	}
	before := c.running()
	step("rolled", 250, func() {
		c.roll(t, "web")
		await(t, "all pods are new", func() bool {
			now := c.running()
			for ip := range now {
				if before[ip] {
					return false
				}
			}
			return len(now) == 250
		})
	})
	step("drained", 250, func() {
		if n := c.drain(t, c.nodes[0]); n < 50 {
			t.Errorf("%d pods were on the drained node, want at least 50", n)
		}
		await(t, "others take their place", func() bool { _, n, _ := observed.count(); return n == 250 })
	})
	dials := c.dialCount()
	step("deleted and created again", 250, func() {
		c.api.must(t, http.MethodDelete, c.path("services/web"), nil, nil)
		await(t, "its slices are deleted", func() bool { n, _, _ := observed.count(); return n == 0 })
		c.serve(t, "web")
	})
	step("deleted slice by slice and created again", 250, func() {
		// The test deletes the slices one after another, like a slow garbage collector.
		c.api.must(t, http.MethodDelete, c.path("services/web"), object{"propagationPolicy": "Orphan"}, nil)
		for _, name := range observed.names() {
			c.api.must(t, http.MethodDelete, "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/"+name, nil, nil)
			calls.waitForCalls(t, 100)
		}
		await(t, "its slices are deleted", func() bool { n, _, _ := observed.count(); return n == 0 })
		c.serve(t, "web")
	})
	if n := c.dialCount() - dials; n != 0 {
		t.Errorf("two deletions and recreations of a Service cost %d connections, want none", n)
	}
	step("scaled to 0", 0, func() { c.scale(t, "web", 0) })
	if ip := callOnce(t, cc); !observed.terminates(ip) {
		t.Errorf("a call reached %s, want a terminating endpoint, because none is ready", ip)
	}
	await(t, "no endpoint is left", func() bool { _, _, n := observed.count(); return n == 0 })
	step("scaled to 100", 100, func() { c.scale(t, "web", 100) })
	checkCalls(t, calls.stop(), observed)
	asked, events := client.history()
	t.Logf("the source made %d requests and received %d events", len(asked), len(events))
}

// checkCalls checks that no call has failed, and that calls went to endpoints that were ready when
// the call began.
func checkCalls(t *testing.T, calls []callResult, observed *observer) {
	t.Helper()
	if len(calls) < 5000 {
		t.Errorf("%d calls were made, want many more", len(calls))
	}
	lost, misdirected := 0, 0
	longest, latest := time.Duration(0), time.Duration(0)
	for _, m := range calls {
		longest = max(longest, m.took)
		if m.err != nil {
			if lost++; lost < 5 {
				t.Errorf("%s: a call was lost after %v: %v", m.phase, m.took, m.err)
			}
			continue
		}
		late := observed.delay(m.ip, m.began)
		if latest = max(latest, late); late > time.Second {
			if misdirected++; misdirected < 5 {
				t.Errorf("%s: a call went to the terminating endpoint %s %v after another one was ready, and took %v", m.phase, m.ip, late, m.took)
			}
		}
	}
	t.Logf("%d calls, %d lost, %d to a terminating endpoint; the latest of these began %v after the event; the longest call took %v; %d pods",
		len(calls), lost, misdirected, latest.Round(time.Millisecond), longest.Round(time.Millisecond), len(observed.ready))
}

func expectPods(t *testing.T, cc *grpc.ClientConn, want map[string]bool) {
	t.Helper()
	var got map[string]bool
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); {
		got = make(map[string]bool)
		for range 5 * len(want) {
			got[callOnce(t, cc)] = true
		}
		if maps.Equal(got, want) {
			return
		}
	}
	t.Fatalf("calls reach %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
}
