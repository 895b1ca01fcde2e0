package topology_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	_ "github.com/understudy-lb/understudy/policy/drop"
	_ "github.com/understudy-lb/understudy/policy/outlierdetection"
	_ "github.com/understudy-lb/understudy/policy/pickfirst"
	_ "github.com/understudy-lb/understudy/policy/priority"
	_ "github.com/understudy-lb/understudy/policy/weightedroundrobin"
	_ "github.com/understudy-lb/understudy/policy/weightedtarget"

	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/net/location"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// channel runs the real policies on a fake channel. Connections to the endpoints in down fail.
type channel struct {
	t          *testing.T
	cc         *lbtest.ClientConn
	policy     balancer.Balancer
	translator topology.Translator
	down       map[string]bool
}

func withChannel(t *testing.T, f func(c *channel)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cc := &lbtest.ClientConn{}
		policy := balancer.Get("understudy_priority").Build(cc, balancer.BuildOptions{})
		defer policy.Close()
		f(&channel{t: t, cc: cc, policy: policy, down: make(map[string]bool)})
	})
}

// answerOf parses an answer from lines such as "0 us/a weight=3: a*2 b!", in any order. The first
// number is the priority, and "*2" is the weight of an endpoint. The default weight of the locality
// is 1. "!" marks an unhealthy endpoint.
func answerOf(t *testing.T, lines ...string) *discovery.Answer {
	t.Helper()
	answer := &discovery.Answer{Service: "cluster", Empty: true}
	for _, line := range lines {
		head, list, _ := strings.Cut(line, ":")
		fields := append(strings.Fields(head), "weight=1")
		region, zone, _ := strings.Cut(fields[1], "/")
		locality := discovery.Locality{Region: region, Zone: zone, Weight: number(t, strings.TrimPrefix(fields[2], "weight="))}
		for _, e := range strings.Fields(list) {
			host, weight, _ := strings.Cut(e, "*")
			host, isUnhealthy := strings.CutSuffix(host, "!")
			endpoint := discovery.Endpoint{Addresses: []string{host + ":1"}, Weight: number(t, weight)}
			if isUnhealthy {
				endpoint.Health = discovery.Unhealthy
			}
			locality.Endpoints = append(locality.Endpoints, endpoint)
		}
		n := int(number(t, fields[0]))
		for n >= len(answer.Priorities) {
			answer.Priorities = append(answer.Priorities, discovery.Priority{})
		}
		answer.Priorities[n].Localities = append(answer.Priorities[n].Localities, locality)
	}
	return answer
}

func number(t *testing.T, text string) uint32 {
	t.Helper()
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

func (c *channel) update(answer *discovery.Answer) {
	c.t.Helper()
	tree, err := c.translator.Translate(answer)
	if err != nil {
		c.t.Fatal(err)
	}
	var state balancer.ClientConnState
	state.BalancerConfig = join(c.t, topology.Settings{}, tree).Config()
	state.ResolverState.Endpoints = tree.Endpoints
	state.ResolverState = hierarchy.Seal(state.ResolverState)
	if err := c.policy.UpdateClientConnState(state); err != nil {
		c.t.Fatalf("update: %v", err)
	}
	c.connect()
}

func (c *channel) connect() {
	c.cc.CompleteConnects(func(a resolver.Address) error {
		if c.down[a.Addr] {
			return errors.New("down")
		}
		return nil
	})
}

// changes lists the endpoints whose connections were made (+) or closed (-) between two snapshots
// of subchannels.
func changes(before, after []*lbtest.SubConn) string {
	var all []string
	for _, sc := range after {
		if !slices.Contains(before, sc) {
			all = append(all, "+"+strings.TrimSuffix(sc.Addresses[0].Addr, ":1"))
		}
	}
	for _, sc := range before {
		if !slices.Contains(after, sc) {
			all = append(all, "-"+strings.TrimSuffix(sc.Addresses[0].Addr, ":1"))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (c *channel) picked(n int) string {
	var all []string
	for range n {
		all = append(all, strings.TrimSuffix(lbtest.Pick(c.cc.State()), ":1"))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

// Updates add or remove a locality or a priority, or change weights. Endpoints that remain must
// keep their connections.
func TestConnectionsOutliveUpdates(t *testing.T) {
	first := []string{"0 us: a b", "0 eu: c", "1 as: d"}
	for _, test := range []struct {
		title string
		down  string
		next  []string
		want  string // new (+) and closed (-) connections
		picks string
	}{
		{"nothing changes", "", first, "", "a b c"},
		{"weights change", "", []string{"0 us weight=9: a*5 b*7", "0 eu: c*3", "1 as weight=4: d"}, "", "a b c"},
		{"the order changes", "", []string{"1 as: d", "0 eu: c", "0 us: b a"}, "", "a b c"},
		{"an endpoint joins", "", []string{"0 us: a b e", "0 eu: c", "1 as: d"}, "+e", "a b c e"},
		{"an endpoint leaves", "", []string{"0 us: a", "0 eu: c", "1 as: d"}, "-b", "a c"},
		{"a locality joins", "", []string{"0 sa: e", "0 us: a b", "0 eu: c", "1 as: d"}, "+e", "a b c e"},
		{"a locality leaves", "", []string{"0 us: a b", "1 as: d"}, "-c", "a b"},
		{"a locality is unhealthy", "", []string{"0 us: a! b!", "0 eu: c", "1 as: d"}, "-a -b", "c"},
		{"a lower priority joins", "", append(slices.Clone(first), "2 sa: e"), "", "a b c"},
		{"the lower priority leaves", "", first[:2], "", "a b c"},
		{"with the first down, a lower priority joins", "a b c", append(slices.Clone(first), "2 sa: e"), "", "d"},
		{"with the first down, the first leaves and the second moves up", "a b c", []string{"0 as: d"}, "-a -b -c", "d"},
		{"with the first down, a new first joins and all move down", "a b c", []string{"0 sa: e", "1 us: a b", "1 eu: c", "2 as: d"}, "+e", "e"},
		{"with the first down, the two change places", "a b c", []string{"1 us: a b", "1 eu: c", "0 as: d"}, "", "d"},
	} {
		t.Run(test.title, func(t *testing.T) {
			withChannel(t, func(c *channel) {
				for host := range strings.FieldsSeq(test.down) {
					c.down[host+":1"] = true
				}
				c.update(answerOf(t, first...))
				before := c.cc.LiveSubConns()
				c.update(answerOf(t, test.next...))
				if got := changes(before, c.cc.LiveSubConns()); got != test.want {
					t.Errorf("connections: %q, want %q", got, test.want)
				}
				if got := c.picked(200); got != test.picks {
					t.Errorf("picks: %s, want %s", got, test.picks)
				}
			})
		})
	}
}

// Updates add or remove drops, or remove the last locality. No connection may be made, because the
// shape of the tree never changes.
func TestConnectionsOutliveDrops(t *testing.T) {
	withChannel(t, func(c *channel) {
		plain, dropping := answerOf(t, "0 us: a b"), answerOf(t, "0 us: a b")
		dropping.Drops = []discovery.Drop{{Category: "lb"}}
		c.update(plain)
		before := c.cc.LiveSubConns()
		for _, answer := range []*discovery.Answer{dropping, plain} {
			c.update(answer)
			if got := changes(before, c.cc.LiveSubConns()); got != "" {
				t.Errorf("connections: %s, want no change", got)
			}
		}
		c.update(answerOf(t))
		if got := changes(before, c.cc.LiveSubConns()); got != "-a -b" {
			t.Errorf("connections: %s, want all closed", got)
		}
		if got := lbtest.Pick(c.cc.State()); !strings.HasPrefix(got, "fail: ") {
			t.Errorf("pick without localities: %s, want a failure", got)
		}
	})
}

// When a near group is added above another group, the latter must keep its name and its
// connections. An endpoint that moves to another group gets a new connection.
func TestConnectionsOutliveNearGroups(t *testing.T) {
	withChannel(t, func(c *channel) {
		c.translator.Near = topology.Near{Prefer: "zone", Place: location.Location{Region: "r", Zone: "a"}}
		for _, step := range []struct {
			what, want, picks string
			lines             []string
		}{
			{"only the region", "+b1 +b2", "b1 b2", []string{"0 r/b: b1 b2", "0 s/c: c1"}},
			{"the zone joins before it", "+a1", "a1", []string{"0 r/a: a1", "0 r/b: b1 b2", "0 s/c: c1"}},
			{"the zone leaves", "-a1", "b1 b2", []string{"0 r/b: b1 b2", "0 s/c: c1"}},
			{"an endpoint moves to the zone", "+b1 -b1", "b1", []string{"0 r/a: b1", "0 r/b: b2", "0 s/c: c1"}},
		} {
			before := c.cc.LiveSubConns()
			c.update(answerOf(t, step.lines...))
			if got := changes(before, c.cc.LiveSubConns()); got != step.want {
				t.Errorf("%s: connections: %q, want %q", step.what, got, step.want)
			}
			if got := c.picked(100); got != step.picks {
				t.Errorf("%s: picks: %s, want %s", step.what, got, step.picks)
			}
		}
	})
}
