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
