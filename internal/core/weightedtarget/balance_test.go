package weightedtarget

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

type zoneTest struct {
	Core
	names []string
	log   []string
}

// update parses zones and updates the core. In "a=3 b=2+1 c=1x4", zone a has one child of capacity
// 3, zone b has two children, b of capacity 2 and b1 of capacity 1, and zone c has 4 callers
// instead of 1. The client is in the first zone.
func (c *zoneTest) update(zones string) {
	b := &Balance{}
	c.names = nil
	for zone := range strings.FieldsSeq(zones) {
		name, rest, _ := strings.Cut(zone, "=")
		sizes, callers, hasCallers := strings.Cut(rest, "x")
		z := Zone{Callers: 1, Capacities: make(map[string]float64)}
		if hasCallers {
			fmt.Sscan(callers, &z.Callers)
		}
		for i, size := range strings.Split(sizes, "+") {
			child := strings.TrimSuffix(fmt.Sprint(name, i), "0")
			var capacity float64
			fmt.Sscan(size, &capacity)
			z.Capacities[child] = capacity
			c.names = append(c.names, child)
		}
		b.Zones = append(b.Zones, z)
	}
	c.SetBalance(b)
	c.record(c.Update(c.names, 0))
	c.record(c.Rebalance())
	c.Publish()
}

func (c *zoneTest) record(actions []Action) {
	for _, a := range actions {
		if a.Kind != Update {
			c.log = append(c.log, [...]string{Create: "create", Retain: "keep", Return: "take", Destroy: "destroy"}[a.Kind]+" "+a.Child)
		}
	}
}

func (c *zoneTest) report(text string) {
	var name, state string
	failed := 0.0
	fmt.Sscan(text, &name, &state, &failed)
	c.Report(name, stateNames[state])
	if state == "READY" {
		c.SetFailedShare(name, failed)
	}
	c.record(c.Rebalance())
	if c.Stale() {
		c.Publish()
	}
}

func (c *zoneTest) state() string {
	text := c.State().String()
	sum := 0.0
	for _, name := range c.In(c.State()) {
		sum += float64(c.Weight(name, 1))
	}
	for _, name := range c.In(c.State()) {
		text += fmt.Sprintf(" %s %.3g", name, 100*float64(c.Weight(name, 1))/sum)
	}
	if len(c.log) > 0 {
		text += "; " + strings.Join(c.log, ", ")
	}
	c.log = nil
	return text
}

func TestBalanceFollowsFailures(t *testing.T) {
	c := &zoneTest{}
	for i, step := range []struct{ event, want string }{
		{"update a=3 b=2 c=1", "CONNECTING a 100; create a"},
		{"a READY 0.6667", "READY a 100; create b"}, // U of a is 1/4 and L is 1/3, so 3/4 of the calls stay; b has spare capacity and connects
		{"b READY", "READY a 75 b 25"},
		{"a READY 0.3333", "READY a 100; keep b"},
		{"a READY 0.6667", "READY a 75 b 25; take b"},
		{"a TRANSIENT_FAILURE", "READY b 100; keep a"}, // U is 0 for a, 2/3 for b and 1/3 for c, and L is 1/3, so only b has spare capacity
		{"a CONNECTING", "READY b 100"},                // after a failure, a child in CONNECTING counts as failed
		{"b READY 0.5", "READY b 100; create c"},
		{"c READY", "READY b 50 c 50"},
		{"b TRANSIENT_FAILURE", "READY c 100; keep b"},
		{"c TRANSIENT_FAILURE", "TRANSIENT_FAILURE a 100; take a, keep c"}, // if all children have failed, their failures are ignored
		{"end b", "TRANSIENT_FAILURE a 100; keep b"},
		{"c READY", "READY c 100; keep a, take c"},
		{"a READY", "READY a 100; take a, keep c"},
		{"b READY", "READY a 100"},
		{"end c", "READY a 100; destroy c"},
		{"end b", "READY a 100; destroy b"},
		{"end b", "READY a 100"},
		{"update a=3 b=2 c=1", "READY a 100"},
		{"update a=1 b=2 c=3", "READY a 100; create c"}, // a and c have half of the calls each, but c has not connected yet
		{"c CONNECTING", "READY a 100"},
		{"c READY", "READY a 50 c 50"},
		{"update a=1x0 b=2 c=3", "READY a 100; keep c"}, // no other zone has spare capacity
		{"update a=0 b=2 c=3", "READY c 100; keep a, create b, take c"},
	} {
		switch verb, rest, _ := strings.Cut(step.event, " "); verb {
		case "update":
			c.update(rest)
		case "end":
			c.record(c.RetentionEnded(rest))
		default:
			c.report(step.event)
		}
		if got := c.state(); got != step.want {
			t.Errorf("step %d, %s:\n     %s\nwant %s", i, step.event, got, step.want)
		}
	}
}

func TestBalanceInSteps(t *testing.T) {
	c := &zoneTest{}
	c.update("a=100 b=100 c=100")
	for _, step := range []struct {
		failed string
		want   float64 // the share of calls that stay in zone a, in percent
	}{
		{"0", 100},
		{"0.02", 100},
		{"0.06", 100},
		{"0.08", 94.52},
		{"0.12", 94.52},
		{"0.16", 88.73},
		{"0.1", 88.73},
		{"0", 100},
	} {
		c.report("a READY " + step.failed)
		if got := 100 * float64(c.balanced.weights["a"]) / allCalls; math.Abs(got-step.want) > 0.01 {
			t.Errorf("%s of a has failed: %.2f %% stay, want %v", step.failed, got, step.want)
		}
	}
	c = &zoneTest{}
	c.update("a=32 b=32")
	c.report("a READY 0.06060606060606061") // 2/33, so that U of a is 31/64: it has changed by exactly one Step
	if got := c.balanced.zoneShares[0]; math.Abs(got-31./64) > 1e-9 {
		t.Errorf("the shares were computed for U = %v of a, want 31/64", got)
	}
	c = &zoneTest{} // A zone with capacity always has a share, however small.
	c.update("a=1 b=100 c=100")
	for _, state := range []string{"READY", "TRANSIENT_FAILURE", "READY"} {
		c.report("a " + state)
		if _, hasShare := c.balanced.weights["a"]; hasShare != (state == "READY") {
			t.Errorf("a is %s: has a share = %v", state, hasShare)
		}
	}
}

// While the only child with a share is connecting, calls must go to the READY reserves, in
// proportion to their remaining capacity.
func TestReservesReceiveCallsOfConnectingChild(t *testing.T) {
	c := &zoneTest{}
	c.update("a=1 b=1+1 c=4")
	c.report("a READY")
	c.report("c READY")
	if got, want := c.state(), "READY a 42.9 c 57.1; create a, create c"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	c.update("a=9 b=1+1 c=4")
	if got, want := c.state(), "READY a 100; keep c"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	c.report("a CONNECTING")
	if got, want := c.state(), "READY c 100"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestBalanceWithRandomSchedules runs random schedules of events. No call may wait or fail while a
// child is READY, no share may be out of date by more than one Step, and no failed reserve may be
// destroyed.
func TestBalanceWithRandomSchedules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &zoneTest{}
		drawZones := func() string {
			var zones []string
			for _, zone := range []string{"a", "b", "c"} {
				text := fmt.Sprint(zone, "=", rapid.IntRange(0, 4).Draw(t, "capacity"))
				if rapid.IntRange(0, 3).Draw(t, "two") == 0 {
					text += fmt.Sprint("+", rapid.IntRange(0, 4).Draw(t, "capacity"))
				}
				zones = append(zones, fmt.Sprint(text, "x", rapid.IntRange(0, 2).Draw(t, "callers")))
			}
			return strings.Join(zones, " ")
		}
		c.update(drawZones())
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"a", "a1", "b", "b1", "c", "c1"}).Draw(t, "child")
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				c.update(drawZones())
			case 1:
				failed := c.children[name] != nil && (c.children[name].effectiveState() == TransientFailure || c.children[name].failedShare > 0)
				before := c.State()
				if c.record(c.RetentionEnded(name)); failed && c.children[name] == nil {
					t.Fatalf("%s had failed, but was destroyed", name)
				}
				if after := c.State(); after != before {
					t.Fatalf("at the end of the retention of %s, the policy is %v, and was %v before", name, after, before)
				}
			default:
				states := slices.Sorted(maps.Keys(stateNames))
				c.report(fmt.Sprint(name, " ", rapid.SampledFrom(states).Draw(t, "state"), " ", float64(rapid.IntRange(0, 3).Draw(t, "failed"))/4))
			}
			for _, child := range c.children {
				if !child.retained && child.effectiveState() == Ready && c.State() != Ready {
					t.Fatalf("a child is READY, but the policy is %v", c.State())
				}
			}
			c.check(t)
		}
	})
}

func (c *zoneTest) check(t *rapid.T) {
	remaining, all := make([]float64, 3), make([]float64, 3)
	callers := make([]float64, 3)
	for i, zone := range c.balanced.Zones {
		callers[i] = zone.Callers
		for name, capacity := range zone.Capacities {
			all[i] += capacity
			if child := c.children[name]; child == nil {
				remaining[i] += capacity
			} else if child.effectiveState() != TransientFailure {
				remaining[i] += capacity * (1 - child.failedShare)
			}
		}
	}
	if remaining[0]+remaining[1]+remaining[2] == 0 {
		remaining = all
	}
	sum := remaining[0] + remaining[1] + remaining[2]
	for i := range remaining {
		if remaining[i] /= max(sum, 1e-100); math.Abs(remaining[i]-c.balanced.zoneShares[i]) > 1./64 || (remaining[i] == 0) != (c.balanced.zoneShares[i] == 0) {
			t.Fatalf("U of zone %d is %v, but the shares were computed for %v", i, remaining[i], c.balanced.zoneShares[i])
		}
	}
	want := Shares(c.balanced.zoneShares, callers, 0)
	for i, zone := range c.balanced.Zones {
		got := 0.0
		for name := range zone.Capacities {
			got += float64(c.balanced.weights[name]) / allCalls
			if child := c.children[name]; child != nil && child.reserve != (sum > 0 && c.balanced.weights[name] == 0) {
				t.Fatalf("%s: reserve = %v with weight %d", name, child.reserve, c.balanced.weights[name])
			} else if child == nil && c.balanced.weights[name] > 0 {
				t.Fatalf("%s has a share, but was not created", name)
			}
		}
		if math.Abs(got-want[i]) > 1e-6 {
			t.Fatalf("zone %d has %v of the calls, want %v", i, got, want[i])
		}
	}
}
