package channel_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	_ "github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/policy/priority"
)

const twoConnections = `{"priorities": ["p0", "p1"], "children": {
	"p0": {"config": [{"understudy_drop": {"childPolicy": [{"understudy_weighted_target": {"targets": {
		"hangs": {"weight": 1, "childPolicy": [{"understudy_pick_first": {}}]},
		"works": {"weight": 1, "childPolicy": [{"understudy_pick_first": {}}]}}}}]}}]},
	"p1": {"config": [{"understudy_pick_first": {}}]}}}`

// The server of a locality closes the connection while another locality hangs. The first locality
// reconnects at once and keeps its calls.
func TestLocalityReconnectsWhileOtherHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc := openTree(t, twoConnections, resolver.State{Endpoints: []resolver.Endpoint{
			endpointAt("hangs", "p0", "hangs"), endpointAt("works", "p0", "works"), endpointAt("backup", "p1"),
		}})
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
			t.Errorf("%d calls of Connect, want 2", n)
		}
		report(connectivity.Connecting)
		report(connectivity.Ready)
		if got := lbtest.Pick(cc.State()); got != "works" || cc.SubConn("backup") != nil {
			t.Errorf("a call goes to %s, want works, and no connection to the backup", got)
		}
	})
}

func openTree(t *testing.T, config string, state resolver.State) *lbtest.ClientConn {
	t.Helper()
	cc := &lbtest.ClientConn{}
	builder := balancer.Get(priority.Name)
	parsed, err := builder.(balancer.ConfigParser).ParseConfig([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	policy := builder.Build(cc, balancer.BuildOptions{})
	t.Cleanup(policy.Close)
	if err := policy.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: parsed, ResolverState: state}); err != nil {
		t.Fatalf("the update was rejected: %v", err)
	}
	synctest.Wait()
	return cc
}

func endpointAt(address string, path ...string) resolver.Endpoint {
	return hierarchy.Set(resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}}, path...)
}

const nestedPriorities = `{"priorities": ["a"], "children": {"a": {"config": [{"understudy_priority": {
	"priorities": ["a", "b"], "children": {
		"a": {"config": [{"understudy_pick_first": {}}]},
		"b": {"config": [{"understudy_pick_first": {}}]}}}}]}}}`

// A source's names for priorities apply only to the outermost priority policy. The log of a nested
// priority policy has the names in the policy's own configuration.
func TestNestedPriorityHasOwnNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		state := stateattr.SetChannel(resolver.State{Endpoints: []resolver.Endpoint{endpointAt("x", "a", "a"), endpointAt("y", "a", "b")}},
			&stateattr.Channel{Names: map[string]string{"a": "outer"}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		cc := openTree(t, nestedPriorities, state)
		cc.SubConn("x").Report(connectivity.Connecting, nil)
		cc.SubConn("x").Report(connectivity.TransientFailure, errors.New("refused"))
		synctest.Wait()
		if got := log.String(); !strings.Contains(got, `from="p0 a" to="p1 b"`) {
			t.Errorf("logged %s, want a failover from p0 a to p1 b", got)
		}
	})
}
