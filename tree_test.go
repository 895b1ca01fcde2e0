package understudy_test

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	_ "github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/priority"
)

// twoPriorities has two localities in its first priority, and one in its second.
const twoPriorities = `{"priorities": ["p0", "p1"], "children": {
	"p0": {"config": [{"understudy_drop": {"childPolicy": [{"understudy_weighted_target": {"targets": {
		"empty": {"weight": 1, "childPolicy": [{"understudy_weighted_round_robin": {}}]},
		"full":  {"weight": 1, "childPolicy": [{"understudy_weighted_round_robin": {}}]}}}}]}}]},
	"p1": {"config": [{"understudy_drop": {"childPolicy": [{"understudy_weighted_target": {"targets": {
		"full":  {"weight": 1, "childPolicy": [{"understudy_weighted_round_robin": {}}]}}}}]}}]}}}`

// Row T1 in a whole tree: an empty locality, such as one whose endpoints are all
// unhealthy, takes nothing from the failover time of the one beside it.
func TestAnEmptyLocalityDoesNotFailItsPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc := &lbtest.ClientConn{}
		builder := balancer.Get(priority.Name)
		config, err := builder.(balancer.ConfigParser).ParseConfig([]byte(twoPriorities))
		if err != nil {
			t.Fatal(err)
		}
		policy := builder.Build(cc, balancer.BuildOptions{})
		defer policy.Close()
		endpoint := func(address string, path ...string) resolver.Endpoint {
			return hierarchy.Set(resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}}, path...)
		}
		err = policy.UpdateClientConnState(balancer.ClientConnState{
			BalancerConfig: config,
			ResolverState:  resolver.State{Endpoints: []resolver.Endpoint{endpoint("a", "p0", "full"), endpoint("b", "p1", "full")}},
		})
		if err != nil {
			t.Errorf("error = %v, want none: a locality is connecting", err)
		}
		time.Sleep(10*time.Second - time.Nanosecond)
		synctest.Wait()
		if cc.SubConn("a") == nil || cc.SubConn("b") != nil {
			t.Errorf("within the failover time there are %v, want a connection to a alone", cc.Live())
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if cc.SubConn("b") == nil {
			t.Errorf("after the failover time there are %v, want one to b, too", cc.Live())
		}
		if state := cc.State().ConnectivityState; state != connectivity.Connecting {
			t.Errorf("state = %v, want CONNECTING", state)
		}
	})
}

// twoConnections has two localities of one connection each in its first priority.
const twoConnections = `{"priorities": ["p0", "p1"], "children": {
	"p0": {"config": [{"understudy_drop": {"childPolicy": [{"understudy_weighted_target": {"targets": {
		"hangs": {"weight": 1, "childPolicy": [{"understudy_pick_first": {}}]},
		"works": {"weight": 1, "childPolicy": [{"understudy_pick_first": {}}]}}}}]}}]},
	"p1": {"config": [{"understudy_pick_first": {}}]}}}`

// One locality's server does not answer. The other one's ends its connection on purpose: it
// is connected to again at once, and the calls stay in the priority.
func TestALocalityConnectsAgainBesideOneThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc := &lbtest.ClientConn{}
		builder := balancer.Get(priority.Name)
		config, err := builder.(balancer.ConfigParser).ParseConfig([]byte(twoConnections))
		if err != nil {
			t.Fatal(err)
		}
		policy := builder.Build(cc, balancer.BuildOptions{})
		defer policy.Close()
		endpoint := func(address string, path ...string) resolver.Endpoint {
			return hierarchy.Set(resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}}, path...)
		}
		if err = policy.UpdateClientConnState(balancer.ClientConnState{
			BalancerConfig: config,
			ResolverState: resolver.State{Endpoints: []resolver.Endpoint{
				endpoint("hangs", "p0", "hangs"), endpoint("works", "p0", "works"), endpoint("backup", "p1"),
			}},
		}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cc.SubConn("hangs").Report(connectivity.Connecting, nil)
		works := cc.SubConn("works")
		report := func(state connectivity.State) {
			works.Report(state, nil)
			synctest.Wait()
		}
		report(connectivity.Connecting)
		report(connectivity.Ready)
		time.Sleep(5 * time.Second)
		report(connectivity.Idle)
		if n := works.Connects(); n != 2 {
			t.Errorf("asked to connect %d times, want 2: nobody else will ask", n)
		}
		report(connectivity.Connecting)
		report(connectivity.Ready)
		if got := lbtest.Pick(cc.State()); got != "works" || cc.SubConn("backup") != nil {
			t.Errorf("a call goes to %s, want works, and no connection to the backup", got)
		}
	})
}
