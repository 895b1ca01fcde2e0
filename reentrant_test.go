package understudy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	_ "github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/internal/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// policies maps this module's policies to a configuration for endpoints with the path "child".
var policies = map[string]string{
	"understudy_priority":             `{"priorities": ["child"], "children": {"child": {"config": [{%q: {}}]}}}`,
	"understudy_weighted_target":      `{"targets": {"child": {"weight": 1, "childPolicy": [{%q: {}}]}}}`,
	"understudy_weighted_round_robin": `{}`,
	"understudy_outlier_detection":    `{"childPolicy": [{%q: {}}]}`,
	"understudy_drop":                 `{"childPolicy": [{%q: {}}]}`,
	"understudy_pick_first":           `{}`,
}

// A parent may call ExitIdle and ResolverError from inside UpdateState, while the policy handles an
// event.
func TestAParentMayCallBackFromUpdateState(t *testing.T) {
	for name, config := range policies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stubs := &lbtest.StubBuilder{PolicyName: "reentrant_stub_" + name}
				stubs.OnUpdate = func(s *lbtest.Stub, _ balancer.ClientConnState) error {
					s.Report(connectivity.Idle, nil)
					return nil
				}
				balancer.Register(stubs)
				cc := &lbtest.ClientConn{}
				p := balancer.Get(name).Build(cc, balancer.BuildOptions{})
				defer p.Close()
				calls := 0
				cc.OnUpdate(func(balancer.State) {
					if calls++; calls > 3 {
						return // a call may publish another state, so the recursion must end
					}
					p.ExitIdle()
					p.ResolverError(errors.New("no such host"))
				})
				if err := p.UpdateClientConnState(stateFor(t, name, config, stubs.PolicyName)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if calls == 0 {
					t.Error("no state was published")
				}
				if stub := stubs.Get(""); stub != nil && (stub.ExitIdles() == 0 || len(stub.ResolverErrors()) == 0) {
					t.Errorf("the child got %d ExitIdle calls and %d resolver errors, want some of both", stub.ExitIdles(), len(stub.ResolverErrors()))
				}
			})
		})
	}
}

func stateFor(t *testing.T, name, config, child string) balancer.ClientConnState {
	t.Helper()
	raw := config
	if config != `{}` {
		raw = fmt.Sprintf(config, child)
	}
	parsed, err := balancer.Get(name).(balancer.ConfigParser).ParseConfig([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	endpoint := hierarchy.Set(resolver.Endpoint{Addresses: []resolver.Address{{Addr: "a"}}}, "child")
	return balancer.ClientConnState{
		BalancerConfig: parsed,
		ResolverState:  resolver.State{Endpoints: []resolver.Endpoint{endpoint}},
	}
}

// Children that read ResolverState.Addresses, such as those of base.NewBalancerBuilder, get their
// endpoints' addresses.
func TestChildrenGetAddresses(t *testing.T) {
	for name, config := range policies {
		if config == `{}` {
			continue // its children belong to this module
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stubs := &lbtest.StubBuilder{PolicyName: "addresses_stub_" + name}
				balancer.Register(stubs)
				p := balancer.Get(name).Build(&lbtest.ClientConn{}, balancer.BuildOptions{})
				defer p.Close()
				if err := p.UpdateClientConnState(stateFor(t, name, config, stubs.PolicyName)); err != nil {
					t.Fatal(err)
				}
				addresses := stubs.Get("").Last().ResolverState.Addresses
				if len(addresses) != 1 || addresses[0].Addr != "a" {
					t.Errorf("the child got the addresses %v, want the endpoint's", addresses)
				}
			})
		})
	}
}

// wrongConfig is a configuration that no policy accepts.
type wrongConfig struct {
	serviceconfig.LoadBalancingConfig
}

// A configuration of the wrong type is an error. Calls fail with it unless an earlier configuration
// stays in use.
func TestAConfigurationOfAnotherType(t *testing.T) {
	for name, config := range policies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stubs := &lbtest.StubBuilder{PolicyName: "wrong_config_stub_" + name}
				balancer.Register(stubs)
				cc := &lbtest.ClientConn{}
				p := balancer.Get(name).Build(cc, balancer.BuildOptions{})
				defer p.Close()
				good := stateFor(t, name, config, stubs.PolicyName)
				wrong := balancer.ClientConnState{BalancerConfig: wrongConfig{}, ResolverState: good.ResolverState}
				check := func(state connectivity.State, pick string) {
					t.Helper()
					synctest.Wait()
					if got := lbtest.Pick(cc.State()); cc.State().ConnectivityState != state || !strings.Contains(got, pick) {
						t.Errorf("calls get %q in %v, want %q in %v", got, cc.State().ConnectivityState, pick, state)
					}
				}
				for _, want := range []struct {
					state connectivity.State
					pick  string
				}{{connectivity.TransientFailure, "wrongConfig"}, {connectivity.Connecting, "queue"}} {
					err := p.UpdateClientConnState(wrong)
					if err == nil || !errors.Is(err, balancer.ErrBadResolverState) || !strings.Contains(err.Error(), "wrongConfig") {
						t.Errorf("error = %v, want ErrBadResolverState with the type", err)
					}
					check(want.state, want.pick)
					if err := p.UpdateClientConnState(good); err != nil {
						t.Fatal(err)
					}
					check(connectivity.Connecting, "queue")
				}
			})
		})
	}
}
