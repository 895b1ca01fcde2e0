package channel_test

import (
	"context"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/internal/testing/scripttest"
)

// zones parses zones and their endpoints, as in "r/a: a0 a1; r/b: b0!". "!" marks an unhealthy
// endpoint.
func zones(text string) (all []flat.Endpoint) {
	for zone := range strings.SplitSeq(text, ";") {
		locality, endpoints, _ := strings.Cut(zone, ":")
		for address := range strings.FieldsSeq(endpoints) {
			e := flat.Endpoint{Locality: strings.TrimSpace(locality)}
			address, unhealthy := strings.CutSuffix(address, "!")
			if unhealthy {
				e.Health = discovery.Unhealthy
			}
			e.Address = address + ":1"
			all = append(all, e)
		}
	}
	return all
}

func (m *memoryNetwork) newNearChannel(text string, dial []grpc.DialOption, options ...given.Option) (*grpc.ClientConn, *scripttest.Source) {
	m.t.Helper()
	s := &scripttest.Source{}
	cc := scripttest.Open(m.t, "x", []discovery.Mechanism{{Source: s}}, options, append(m.dialOptions(), dial...)...)
	if err := s.Receiver.Update(flat.Answer(zones(text)...)); err != nil {
		m.t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	synctest.Wait()
	return cc, s
}

func (m *memoryNetwork) shares(cc *grpc.ClientConn, calls int) map[byte]float64 {
	m.t.Helper()
	shares := make(map[byte]float64)
	for range calls {
		from, err := m.call(cc)
		if err != nil {
			m.t.Fatal(err)
		}
		shares[from[0]] += 100 / float64(calls)
	}
	return shares
}

// Each zone gets its computed share of 10,000 calls within 0.1 percentage points.
func TestBalanceOverManyCalls(t *testing.T) {
	const sixths, callers = "/a: a0; /b: b0!; /c: c0 c1 c2; /d: d0 d1 d2; /e: e0", "a:2,b:2,c:1,d:1"
	const three = "/a: a0 a1 a2; /b: b0 b1; /c: c0"
	for _, test := range []struct {
		zones, zone, callers string
		expected             string
	}{
		{sixths, "a", callers, "37.5 0 24.04 24.04 14.42"},
		{three, "a", "", "100 0 0"},
		{three, "b", "", "0 100 0"},
		{three, "c", "", "50 0 50"},
	} {
		t.Run(fmt.Sprintf("%.3s in %s", test.expected, test.zone), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory(t)
				cc, _ := m.newNearChannel(test.zones, nil, given.Set("Prefer", "balance"), given.Set("Zone", test.zone), given.Set("ZoneCallers", test.callers))
				shares := m.shares(cc, 10_000)
				for i, want := range strings.Fields(test.expected) {
					var percent float64
					fmt.Sscan(want, &percent)
					if got := shares['a'+byte(i)]; math.Abs(got-percent) > 0.1 {
						t.Errorf("zone %c has %.2f %% of the calls of zone %s, want %v", 'a'+i, got, test.zone, percent)
					}
				}
			})
		})
	}
}

func (m *memoryNetwork) dialHangingFor(addresses ...string) []grpc.DialOption {
	return []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		if slices.Contains(addresses, address) {
			m.mu.Lock()
			m.server(address).attempts++
			m.mu.Unlock()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return m.dial(ctx, address)
	})}
}

// The nearest group of endpoints hangs. The next groups are connected from the start, and get calls
// after the failover timeout. That is so even if the next group hangs, too.
func TestNearGroupsHang(t *testing.T) {
	for _, test := range []struct {
		prefer, hangs, want string
		wantAfter           time.Duration // until calls succeed
	}{
		{"zone", "a0:1", "b0:1", 2 * time.Second},
		{"zone", "a0:1 b0:1", "c0:1", 2 * time.Second},
		{"balance", "a0:1", "bc", 2 * time.Second}, // zones b and c share the calls by their spare capacity
	} {
		t.Run(test.prefer+" "+test.hangs, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, start := newMemory(t), time.Now()
				cc, _ := m.newNearChannel("r/a: a0; r/b: b0; s/c: c0", m.dialHangingFor(strings.Fields(test.hangs)...),
					given.Set("Overflow", true), given.Set("FailoverTimeout", 2*time.Second), given.Set("WarmStandby", 1), given.Set("Prefer", test.prefer), given.Set("Zone", "a"), given.Set("Region", "r"))
				var from string
				err := context.Canceled
				for err != nil && time.Since(start) < time.Minute {
					from, err = m.call(cc)
				}
				if elapsed := time.Since(start); !strings.Contains(test.want, from[:min(1, len(from))]) || elapsed.Round(10*time.Millisecond) != test.wantAfter {
					t.Errorf("%s answers after %v, want one of %s after %v", from, time.Since(start), test.want, test.wantAfter)
				}
			})
		})
	}
}

func TestZoneMinEndpoints(t *testing.T) {
	for minimum, want := range map[int]string{1: "a", 2: "a", 3: "ab", 6: "abc"} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(t)
			cc, _ := m.newNearChannel("r/a: a0 a1; r/b: b0 b1; s/c: c0", nil,
				given.Set("Prefer", "zone"), given.Set("Zone", "a"), given.Set("Region", "r"), given.Set("ZoneMinEndpoints", minimum))
			got := ""
			shares := m.shares(cc, 100)
			for _, zone := range []byte("abc") {
				if shares[zone] > 0 {
					got += string(zone)
				}
			}
			if got != want {
				t.Errorf("zoneMinEndpoints=%d: the calls go to zones %s, want %s", minimum, got, want)
			}
		})
	}
}

// inZones calls f with a fleet whose Prefer is "balance". The client is in zone a.
func inZones(t *testing.T, settings topology.Settings, text string, f func(h *fleet)) {
	t.Helper()
	inZonesOf(t, settings, flat.Answer(zones(text)...), f)
}

func inZonesOf(t *testing.T, settings topology.Settings, answer discovery.Answer, f func(h *fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &fleet{t: t, failing: make(map[string]bool), cc: &lbtest.ClientConn{}}
		h.policy = balancer.Get("understudy_priority").Build(h.cc, balancer.BuildOptions{})
		defer h.policy.Close()
		settings.Prefer, settings.Zone = "balance", "a"
		translator := topology.Translator{Near: settings.Near()}
		tree, err := translator.Translate(&answer)
		if err != nil {
			t.Fatal(err)
		}
		h.update(topology.Join(settings, tree))
		f(h)
	})
}

// All endpoints in the client's zone answer with errors. If there are several, they are ejected one
// by one, the zone with spare capacity gets their calls, and they get calls again when their
// ejections end (gRFC A50). That is so even though no other zone of the priority is connected, and
// it does not depend on overflow.
func TestBalancedZoneReturnsErrors(t *testing.T) {
	const longestEjection = 5 * time.Minute
	for zones, others := range map[string]string{
		"/a: a0 a1 a2; /b: b0 b1; /c: c0":             "b",
		"/a: a0; /b: b0; /c: c0":                      "bc",
		"/a: a0 a1 a2 a3 a4 a5; /b: b0 b1 b2; /c: c0": "b",
	} {
		for _, overflow := range []bool{false, true} {
			inZones(t, topology.Settings{OutlierDetection: true, Overflow: overflow}, zones, func(h *fleet) {
				if counts, failed := h.calls(time.Second); counts["a"] != 200 || failed > 0 {
					t.Fatalf("%s: before: calls %v, %d failed", zones, counts, failed)
				}
				homeEndpoints := len(h.cc.LiveSubConns())
				if want := strings.Count(zones, " a"); homeEndpoints != want {
					t.Errorf("%s: %d endpoints are connected, want the %d at home", zones, homeEndpoints, want)
				}
				for i := range homeEndpoints {
					h.failing[fmt.Sprintf("a%d:1", i)] = true
				}
				h.calls(21 * time.Second)
				counts, failed := h.calls(30 * time.Minute)
				for _, other := range others {
					if counts[string(other)] < 10_000 {
						t.Errorf("%s: calls %v, want many in %c", zones, counts, other)
					}
				}
				if percent := 100 * float64(failed) / float64(30*60*200); percent > 1.5 || failed == 0 {
					t.Errorf("%s: %.2f %% of the calls failed, want some and at most 1.5 %%", zones, percent)
				}
				clear(h.failing)
				h.calls(longestEjection)
				if counts, failed := h.calls(time.Minute); counts["a"] < 11900 || failed > 0 {
					t.Errorf("%s: afterwards: calls %v, %d failed, want all at home", zones, counts, failed)
				}
			})
		}
	}
}

// One of three endpoints in the client's zone is ejected. Some of the zone's calls go to the zone
// with spare capacity.
func TestBalancedZoneIsPartlyEjected(t *testing.T) {
	inZones(t, topology.Settings{OutlierDetection: true}, "/a: a0 a1 a2; /b: b0 b1 b2; /c: c0 c1 c2 c3", func(h *fleet) {
		h.calls(time.Second)
		h.failing["a0:1"] = true
		h.calls(20 * time.Second)
		// Zones a, b and c have 2/9, 3/9 and 4/9 of the capacity. So a keeps two thirds of its
		// calls, and c gets the others.
		if counts, _ := h.calls(3 * time.Second); counts["a"] != 400 || counts["b"] != 0 || counts["c"] != 200 {
			t.Errorf("the calls go to %v, want 400 in a and 200 in c", counts)
		}
	})
}

// A standby with Prefer "balance" connects twenty endpoints. They are in the zones that get calls
// from this client in normal operation. The other zones are connected only when they are needed.
func TestStandbyOfBalancedZones(t *testing.T) {
	all := zones("/a: a0; /b: b0")
	for i := range 30 {
		zone := "b"
		if i < 25 {
			zone = "a"
		}
		all = append(all, flat.Endpoint{Address: fmt.Sprintf("%s%d:1", zone, 100+i), Locality: "/" + zone, Priority: 1})
	}
	inZonesOf(t, topology.Settings{WarmStandby: 1}, flat.Answer(all...), func(h *fleet) {
		counts := make(map[byte]int)
		for _, sc := range h.cc.LiveSubConns() {
			counts[sc.Addresses[0].Addr[0]]++
		}
		if counts['a'] != 1+20 || counts['b'] != 1+5 {
			t.Errorf("%d endpoints of zone a and %d of b are connected, want 1 and 20, and 1 and 5", counts['a'], counts['b'])
		}
	})
}

// Some connected endpoints of a standby fail. Their share of the calls does not move to zones that
// the standby has not connected.
func TestStandbyOfBalancedZonesFailsPartly(t *testing.T) {
	all := zones("/a: p0")
	for i := range 72 {
		zone := "abc"[i%3 : i%3+1]
		all = append(all, flat.Endpoint{Address: fmt.Sprintf("%s%d:1", zone, 100+i), Locality: "/" + zone, Priority: 1})
	}
	inZonesOf(t, topology.Settings{WarmStandby: 1}, flat.Answer(all...), func(h *fleet) {
		var live []string
		for _, sc := range h.cc.LiveSubConns() {
			if address := sc.Addresses[0].Addr; address[0] == 'a' {
				live = append(live, address)
			}
		}
		h.failConnections(live[:8]...)
		if state := h.cc.State().ConnectivityState; state != connectivity.Ready {
			t.Errorf("the channel is %v, want READY by p0", state)
		}
	})
}

func TestBalanceOfEndpointsInTwoZones(t *testing.T) {
	answer := flat.Answer(zones("/a: a0 a1 a2; /b: x0 x1 x2; /c: x0 x1 x2")...)
	localities := answer.Priorities[0].Localities
	localities[1], localities[2] = localities[2], localities[1]
	inZonesOf(t, topology.Settings{}, answer, func(h *fleet) {
		h.settle()
		h.failConnections("a1:1")
		if counts, failed := h.calls(time.Second); counts["a"] == 0 || failed > 0 {
			t.Errorf("calls %v, %d failed, want some at home, and none failed", counts, failed)
		}
	})
}
