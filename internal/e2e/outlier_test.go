package e2e

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	_ "github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/testproxy"
)

// serverGroup is the backends of a priority, which answer with the group's name. Each backend of
// startGroup is behind a relay.
type serverGroup struct {
	name    string
	servers []*server
	relays  []*testproxy.Relay
}

func startGroup(t *testing.T, name string, size int) *serverGroup {
	t.Helper()
	g := &serverGroup{name: name}
	for range size {
		s := startServer(t, name, nil)
		g.servers = append(g.servers, s)
		g.relays = append(g.relays, testproxy.StartRelay(t, s.address))
	}
	return g
}

func startSecureGroup(t *testing.T, name string, certificate *tls.Certificate) *serverGroup {
	t.Helper()
	g := &serverGroup{name: name}
	for range 2 {
		g.servers = append(g.servers, startServer(t, name, certificate))
	}
	return g
}

func (g *serverGroup) addresses() (all []string) {
	for _, s := range g.servers {
		all = append(all, s.address)
	}
	for i, r := range g.relays {
		all[i] = r.Address
	}
	return all
}

func (g *serverGroup) has(address string) bool { return slices.Contains(g.addresses(), address) }

func (g *serverGroup) fail(err error, servers ...*server) {
	for _, s := range servers {
		if err == nil {
			s.failures.Store(0)
			continue
		}
		s.err = err
		s.failures.Store(1 << 40)
	}
}

func (g *serverGroup) lbEndpoints() string { return lbEndpoints(g.addresses()) }

func lbEndpoints(addresses []string) string {
	var text strings.Builder
	for _, address := range addresses {
		host, port, _ := strings.Cut(address, ":")
		fmt.Fprintf(&text, "  - endpoint: {address: {socket_address: {address: %s, port_value: %s}}}\n", host, port)
	}
	return text.String()
}

func dialPriorities(t *testing.T, opts []given.Option, groups ...*serverGroup) *grpc.ClientConn {
	t.Helper()
	return dialPrioritiesWith(t, []grpc.DialOption{given.Dial(opts...)}, groups...)
}

func dialPrioritiesWith(t *testing.T, opts []grpc.DialOption, groups ...*serverGroup) *grpc.ClientConn {
	t.Helper()
	var text strings.Builder
	text.WriteString("cluster_name: e2e\nendpoints:\n")
	for priority, g := range groups {
		fmt.Fprintf(&text, "- priority: %d\n  locality: {region: %s}\n  load_balancing_weight: 1\n  lb_endpoints:\n%s", priority, g.name, g.lbEndpoints())
	}
	return newClient(t, "file://"+endpointsFileOf(t, text.String()), opts...)
}

func dialFile(t *testing.T, text string, opts ...given.Option) *grpc.ClientConn {
	t.Helper()
	return newClient(t, "file://"+endpointsFileOf(t, text), given.Dial(opts...))
}

func endpointsFileOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "endpoints.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// If the first priority answers with errors, hangs or is cut off, calls go to the next one although
// the connections stay open. They return after the repair.
func TestFailingPriorityFailsOverAndBack(t *testing.T) {
	t.Parallel()
	failing := func(code codes.Code) func(*serverGroup, bool) {
		return func(g *serverGroup, isBroken bool) {
			if isBroken {
				g.fail(status.Error(code, "broken"), g.servers...)
			} else {
				g.fail(nil, g.servers...)
			}
		}
	}
	for name, test := range map[string]struct {
		setBroken func(g *serverGroup, wrong bool)
		deadline  time.Duration
		code      codes.Code
	}{
		"UNAVAILABLE": {failing(codes.Unavailable), callTimeout, codes.Unavailable},
		"INTERNAL":    {failing(codes.Internal), callTimeout, codes.Internal},
		"hangs": {func(g *serverGroup, wrong bool) {
			for _, s := range g.servers {
				s.hangs.Store(wrong)
			}
		}, time.Second, codes.DeadlineExceeded},
		"packets are dropped": {func(g *serverGroup, wrong bool) {
			for _, r := range g.relays {
				if wrong {
					r.Cut()
				} else {
					r.Mend()
				}
			}
		}, time.Second, codes.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			near, far := startGroup(t, "near", 2), startGroup(t, "far", 2)
			f := startFlow(t, dialPriorities(t, []given.Option{given.Set("OutlierDetection", options.On), given.Set("Overflow", true)}, near, far), callTimeout)
			f.awaitConsecutive(t, "were answered by the first priority", answeredBy("near"))
			f.deadline.Store(int64(test.deadline))
			test.setBroken(near, true)
			broken, n := time.Now(), f.count()
			first := f.await(t, n, "was answered by the next priority", answeredBy("far"))
			f.awaitConsecutive(t, "were answered by the next priority", answeredBy("far"))
			test.setBroken(near, false)
			f.deadline.Store(int64(callTimeout)) // a busy machine must not cause another ejection
			back := f.awaitConsecutive(t, "were answered by the first priority", answeredBy("near"))
			calls, _ := f.since(0)
			// On a busy machine, the next priority may be slow enough to be full: calls are then shed.
			wantOnlyCodes(t, calls, test.code, codes.ResourceExhausted)
			t.Logf("the next priority answered after %v, the calls returned after %v; %s", first.end.Sub(broken), back, summary(calls))
		})
	}
}

// If the only priority answers with errors, it keeps all calls, and they fail only with its errors.
func TestOnlyPriorityKeepsFailingCalls(t *testing.T) {
	t.Parallel()
	near := startGroup(t, "near", 2)
	f := startFlow(t, dialPriorities(t, []given.Option{given.Set("OutlierDetection", options.On), given.Set("Overflow", true)}, near), callTimeout)
	f.awaitConsecutive(t, "were answered", answeredBy("near"))
	near.fail(status.Error(codes.Internal, "broken"), near.servers...)
	f.awaitConsecutive(t, "failed", func(c call) bool { return status.Code(c.err) == codes.Internal })
	near.fail(nil, near.servers...)
	f.awaitConsecutive(t, "were answered", answeredBy("near"))
	calls, _ := f.since(0)
	wantOnlyCodes(t, calls, codes.Internal)
}

// With max_ejection_percent 20, one of five endpoints may be ejected. Two answer with errors. One
// of them is ejected within two intervals, but never both.
func TestOneOfFiveEndpointsIsEjected(t *testing.T) {
	t.Parallel()
	good, bad := startGroup(t, "good", 3), startGroup(t, "bad", 2)
	const detection = "{interval: 2s, max_ejection_percent: 20, enforcing_success_rate: 0, enforcing_failure_percentage: 100, failure_percentage_request_volume: 10}"
	cluster := func(name, more string, groups ...*serverGroup) string {
		text := "- name: " + name + "\n  load_assignment:\n    endpoints:\n    - lb_endpoints:\n"
		for _, g := range groups {
			text += strings.ReplaceAll(g.lbEndpoints(), "  -", "      -")
		}
		return text + more
	}
	f := startFlow(t, dialFile(t, "clusters:\n"+cluster("shop", "  outlier_detection: "+detection+"\n", good, bad)), callTimeout)
	f.await(t, 0, "was answered by the last", answeredBy("bad"))
	answered := func(c call) bool { return answeredBy("good")(c) || answeredBy("bad")(c) }
	f.awaitConsecutive(t, "were answered", answered)
	bad.fail(status.Error(codes.Internal, "broken"), bad.servers[0])
	t.Logf("one endpoint was ejected after %v", f.awaitConsecutive(t, "were answered by the others", answered))
	bad.fail(status.Error(codes.Internal, "broken"), bad.servers[1])
	// The other bad endpoint stays in use and gets a quarter of the calls. The test checks this for
	// three intervals.
	n := f.count()
	f.await(t, n, "failed", func(c call) bool { return c.err != nil })
	begin := time.Now()
	f.await(t, n, "ended six seconds later", func(c call) bool { return c.begin.Sub(begin) > 6*time.Second })
	calls, _ := f.since(n)
	wantOnlyCodes(t, calls, codes.Internal)
	failed := 0
	for _, c := range calls {
		if c.err != nil {
			failed++
		}
	}
	t.Logf("with two bad endpoints, in three intervals: %s", summary(calls))
	if share := float64(failed) / float64(len(calls)); share < 0.2 || share > 0.45 {
		t.Errorf("%.0f %% of the calls failed, want about a quarter; %s", 100*share, summary(calls))
	}
}
