package channel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
	"google.golang.org/grpc/status"

	_ "github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// policies has a configuration for each policy of this module, and for a variant after a space. %q is
// the name of the child policy.
var policies = map[string]string{
	"understudy_priority":             `{"priorities": ["child"], "children": {"child": {"config": [{%q: {"id": "child"}}]}}}`,
	"understudy_priority overflow":    `{"overflow": true, "priorities": ["child"], "children": {"child": {"config": [{%q: {"id": "child"}}]}}}`,
	"understudy_weighted_target":      `{"targets": {"child": {"weight": 1, "childPolicy": [{%q: {"id": "child"}}]}}}`,
	"understudy_weighted_round_robin": `{}`,
	"understudy_outlier_detection":    `{"childPolicy": [{%q: {"id": "child"}}]}`,
	"understudy_drop":                 `{"childPolicy": [{%q: {"id": "child"}}]}`,
	"understudy_pick_first":           `{}`,
}

// policyTest is a policy under test on a fake channel. Its child is a stub policy or, if the policy
// has no child policies, the subchannel to "a".
type policyTest struct {
	*testing.T
	name   string
	cc     *lbtest.ClientConn
	policy balancer.Balancer
	stubs  *lbtest.StubBuilder
	valid  balancer.ClientConnState
}

func eachPolicy(t *testing.T, f func(c *policyTest)) {
	t.Helper()
	for title, config := range policies {
		name, _, _ := strings.Cut(title, " ")
		t.Run(strings.TrimPrefix(title, "understudy_"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &policyTest{T: t, name: name, cc: &lbtest.ClientConn{}}
				if strings.Contains(config, "%q") {
					c.stubs = &lbtest.StubBuilder{PolicyName: "conformance_stub"}
					balancer.Register(c.stubs)
					config = fmt.Sprintf(config, c.stubs.PolicyName)
				}
				builder := balancer.Get(name)
				parsed, err := builder.(balancer.ConfigParser).ParseConfig([]byte(config))
				if err != nil {
					t.Fatal(err)
				}
				c.valid = balancer.ClientConnState{BalancerConfig: parsed}
				c.valid.ResolverState.Endpoints = []resolver.Endpoint{hierarchy.Set(endpointWith("a"), "child")}
				c.valid.ResolverState = stateattr.EnableHealthListener(c.valid.ResolverState)
				c.policy = builder.Build(c.cc, balancer.BuildOptions{})
				defer c.policy.Close()
				f(c)
			})
		})
	}
}

func eachParent(t *testing.T, f func(c *policyTest)) {
	t.Helper()
	eachPolicy(t, func(c *policyTest) {
		if c.stubs != nil {
			f(c)
		}
	})
}

func endpointWith(address string) resolver.Endpoint {
	return resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}}
}

func (c *policyTest) update() error {
	err := c.policy.UpdateClientConnState(c.valid)
	synctest.Wait()
	return err
}

func (c *policyTest) mustUpdate() {
	c.Helper()
	if err := c.update(); err != nil {
		c.Fatal(err)
	}
}

func (c *policyTest) child() func(connectivity.State, error) {
	c.Helper()
	if c.stubs != nil {
		return c.stubs.Get("child").Report
	}
	sc := c.cc.SubConn("a")
	return func(state connectivity.State, err error) {
		sc.Report(state, err)
		if state == connectivity.Ready {
			sc.ReportHealth(state, nil)
		}
	}
}

func (c *policyTest) report(state connectivity.State, err error) {
	c.Helper()
	c.child()(state, err)
	synctest.Wait()
}

func (c *policyTest) childClosed() bool {
	if c.stubs != nil {
		return c.stubs.Built()[0].IsClosed()
	}
	return c.cc.SubConns()[0].IsShutdown()
}

func (c *policyTest) wantPick() string {
	if c.stubs != nil {
		return "child"
	}
	return "a"
}

// want checks the last published state and the result of a pick. If the pick fails, its error must
// contain pick, and must not be a status error, because that would end wait-for-ready calls.
func (c *policyTest) want(state connectivity.State, pick string) {
	c.Helper()
	synctest.Wait()
	got := c.cc.State()
	isFailure, picked := state == connectivity.TransientFailure, lbtest.Pick(got)
	if got.ConnectivityState != state || picked != pick && (!isFailure || !strings.Contains(picked, pick)) {
		c.Errorf("calls get %q in %v, want %q in %v", picked, got.ConnectivityState, pick, state)
	}
	if got.Picker != nil && isFailure {
		_, err := got.Picker.Pick(balancer.PickInfo{Ctx: context.Background()})
		if _, isStatus := status.FromError(err); isStatus {
			c.Errorf("calls fail with the status %v", err)
		}
	}
}

// A parent may call the policy and its picker from UpdateState. If one connection is lost, such
// calls must not make the policy connect twice.
func TestParentCallsPolicyFromUpdateState(t *testing.T) {
	eachPolicy(t, func(c *policyTest) {
		if c.stubs != nil {
			c.stubs.OnUpdate = func(s *lbtest.Stub, _ balancer.ClientConnState) error {
				s.Report(connectivity.Idle, nil)
				return nil
			}
		}
		calls := 0
		c.cc.OnUpdate(func(state balancer.State) {
			if calls++; calls > 5 {
				return
			}
			_, _ = state.Picker.Pick(balancer.PickInfo{})
			c.policy.ExitIdle()
			c.policy.ResolverError(errors.New("no such host"))
		})
		c.mustUpdate()
		if calls == 0 {
			c.Error("no state was published")
		}
		if c.stubs != nil {
			if stub := c.stubs.Get("child"); stub.ExitIdles() == 0 || len(stub.ResolverErrors()) == 0 {
				c.Errorf("the child got %d ExitIdle calls and %d resolver errors, want some of both", stub.ExitIdles(), len(stub.ResolverErrors()))
			}
			return
		}
		calls = 0
		c.report(connectivity.Connecting, nil)
		c.report(connectivity.Ready, nil)
		time.Sleep(time.Second) // a shorter connection would count as failed
		c.report(connectivity.Idle, nil)
		if n := c.cc.SubConn("a").Connects(); n != 2 {
			c.Errorf("%d calls of Connect, want 2", n)
		}
	})
}

func TestNothingIsPublishedAfterClose(t *testing.T) {
	eachPolicy(t, func(c *policyTest) {
		c.mustUpdate()
		report := c.child()
		report(connectivity.Connecting, nil)
		report(connectivity.Ready, nil)
		time.Sleep(time.Second)
		report(connectivity.Idle, nil)
		synctest.Wait()
		var pickers []balancer.Picker
		for _, state := range c.cc.States() {
			pickers = append(pickers, state.Picker)
		}
		c.policy.Close()
		n, created := len(c.cc.States()), len(c.cc.SubConns())
		for _, state := range []connectivity.State{connectivity.Connecting, connectivity.Ready, connectivity.Idle, connectivity.TransientFailure} {
			report(state, errors.New("refused"))
		}
		for _, picker := range pickers {
			_, _ = picker.Pick(balancer.PickInfo{Ctx: context.Background()})
		}
		c.policy.ExitIdle()
		c.policy.ResolverError(errors.New("no such host"))
		_ = c.policy.UpdateClientConnState(c.valid)
		c.policy.UpdateSubConnState(nil, balancer.SubConnState{})
		c.policy.Close()
		time.Sleep(time.Hour)
		if now := len(c.cc.States()); now != n || len(c.cc.SubConns()) != created || len(c.cc.LiveSubConns()) > 0 {
			c.Errorf("after Close, %d states were published and %d subchannels made; %v are live", now-n, len(c.cc.SubConns())-created, c.cc.LiveSubConns())
		}
		if c.stubs != nil && (len(c.stubs.Built()) != 1 || c.stubs.Built()[0].Closes() != 1) {
			c.Errorf("%d children were built, the first was closed %d times, want one closed once", len(c.stubs.Built()), c.stubs.Built()[0].Closes())
		}
	})
}

// Reports that are queued when Close is called are not published after Close has closed the child.
func TestNothingIsPublishedWhileClosing(t *testing.T) {
	eachPolicy(t, func(c *policyTest) {
		c.mustUpdate()
		c.report(connectivity.Ready, nil)
		report := c.child()
		c.cc.OnUpdate(func(balancer.State) {
			if c.childClosed() {
				c.Error("published a state of a closed child")
			}
		})
		for range 100 {
			report(connectivity.Ready, nil)
		}
		c.policy.Close()
	})
}

// Children report, and calls are picked, during updates and Close. Children hold a lock while they
// report. A policy that calls a child while it holds its own lock deadlocks here.
func TestChildrenReportAtAllTimes(t *testing.T) {
	for range 20 {
		eachPolicy(t, func(c *policyTest) {
			var lock sync.Mutex
			if c.stubs != nil {
				c.stubs.OnUpdate = func(s *lbtest.Stub, _ balancer.ClientConnState) error {
					lock.Lock()
					defer lock.Unlock()
					s.Report(connectivity.Connecting, nil)
					s.Report(connectivity.Ready, nil)
					return nil
				}
			}
			c.mustUpdate()
			report := c.child()
			var workers sync.WaitGroup
			workers.Go(func() {
				for i := range 200 {
					lock.Lock()
					report([]connectivity.State{connectivity.Ready, connectivity.TransientFailure, connectivity.Idle}[i%3], errors.New("x"))
					lock.Unlock()
				}
			})
			workers.Go(func() {
				for range 200 {
					_, _ = c.cc.State().Picker.Pick(balancer.PickInfo{Ctx: context.Background()})
				}
			})
			for range 20 {
				_ = c.policy.UpdateClientConnState(c.valid)
				c.policy.ExitIdle()
			}
			c.policy.Close()
			n := len(c.cc.States())
			workers.Wait()
			synctest.Wait()
			if now := len(c.cc.States()); now != n || len(c.cc.LiveSubConns()) > 0 {
				c.Errorf("after Close, %d states were published, and %v are live", now-n, c.cc.LiveSubConns())
			}
		})
	}
}

// A policy starts no goroutines. This policy is never closed, so the bubble would not end if one of
// its goroutines were still running.
func TestPoliciesRunNoGoroutine(t *testing.T) {
	eachPolicy(t, func(c *policyTest) {
		p := c.policy
		c.policy = balancer.Get("understudy_drop").Build(&lbtest.ClientConn{}, balancer.BuildOptions{})
		if err := p.UpdateClientConnState(c.valid); err != nil {
			c.Fatal(err)
		}
		c.report(connectivity.Ready, nil)
	})
}

// An update publishes at most one state. A repeated update builds no child, connects no subchannel
// and changes no picks.
func TestRepeatedUpdates(t *testing.T) {
	eachPolicy(t, func(c *policyTest) {
		repeat := func(limit int) {
			c.Helper()
			before := len(c.cc.States())
			for range 100 {
				c.mustUpdate()
			}
			if n := len(c.cc.States()) - before; n > limit {
				c.Errorf("100 updates published %d states, want at most %d", n, limit)
			}
			if c.stubs != nil && len(c.stubs.Built()) != 1 || c.stubs == nil && len(c.cc.SubConns()) != 1 {
				c.Error("an update built another child")
			}
			c.want(connectivity.Ready, c.wantPick())
		}
		c.mustUpdate()
		c.report(connectivity.Connecting, nil)
		c.report(connectivity.Ready, nil)
		limit := 0
		if c.name == "understudy_priority" || c.name == "understudy_weighted_target" {
			limit = 100 // these two policies publish after each update
		}
		repeat(limit)
		if c.stubs != nil {
			c.stubs.OnUpdate = func(s *lbtest.Stub, _ balancer.ClientConnState) error {
				s.Report(connectivity.Connecting, nil)
				s.Report(connectivity.Ready, nil)
				return nil
			}
			repeat(100)
		}
	})
}

// The policy passes resolver errors, ExitIdle and ResetBackoff to its child. It passes the child's
// requests for re-resolution to the channel.
func TestCallsReachChildren(t *testing.T) {
	eachPolicy(t, func(c *policyTest) {
		c.policy.ResolverError(status.Error(codes.NotFound, "no such host"))
		c.want(connectivity.TransientFailure, "rpc error: code = NotFound desc = no such host")
		c.mustUpdate()
		c.want(connectivity.Connecting, "queue")
		c.report(connectivity.Ready, nil)
		c.policy.ResolverError(errors.New("gone"))
		c.want(connectivity.Ready, c.wantPick())
		if c.stubs == nil {
			return
		}
		stub := c.stubs.Get("child")
		if got := stub.ResolverErrors(); len(got) != 1 || got[0].Error() != "gone" {
			c.Errorf("the child got the resolver errors %v, want one", got)
		}
		c.report(connectivity.Idle, nil)
		before := stub.ExitIdles()
		c.policy.ExitIdle()
		synctest.Wait()
		if n := stub.ExitIdles() - before; n != 1 {
			c.Errorf("the child got %d ExitIdle calls, want 1", n)
		}
		c.policy.(shell.BackoffResetter).ResetBackoff(time.Second)
		synctest.Wait()
		if n := stub.Resets(); n != 1 {
			c.Errorf("the child got %d ResetBackoff calls, want 1", n)
		}
		stub.ResolveNow()
		if n := c.cc.ResolveNows(); n != 1 {
			c.Errorf("%d requests for re-resolution were passed on, want 1", n)
		}
	})
}

// A child gets its endpoints, also in ResolverState.Addresses, because children such as those of
// base.NewBalancerBuilder read only addresses. A policy with several children removes its child's
// name from the front of each endpoint's path. If gRPC's proxy resolver replaces the addresses, the
// endpoints still go to the same child.
func TestChildrenGetEndpoints(t *testing.T) {
	eachParent(t, func(c *policyTest) {
		c.mustUpdate()
		received := c.stubs.Get("child").LastUpdate().ResolverState
		if len(received.Endpoints) != 1 || len(received.Addresses) != 1 || received.Addresses[0].Addr != "a" {
			c.Fatalf("the child got %v and the addresses %v, want the endpoint and its address", received.Endpoints, received.Addresses)
		}
		wantPath := []string{"child"}
		if c.name == "understudy_priority" || c.name == "understudy_weighted_target" {
			wantPath = nil
		}
		if path := hierarchy.Path(received.Endpoints[0]); !slices.Equal(path, wantPath) {
			c.Errorf("the child got an endpoint with the path %q, want %q", path, wantPath)
		}
		c.valid.ResolverState = hierarchy.Seal(c.valid.ResolverState)
		c.valid.ResolverState.Endpoints = []resolver.Endpoint{endpointWith("proxy")}
		c.mustUpdate()
		received = c.stubs.Get("child").LastUpdate().ResolverState
		if len(received.Endpoints) != 1 || hierarchy.Addresses(received.Endpoints[0])[0].Addr != "a" {
			c.Errorf("behind a proxy, the child got %v, want the proxy for a", received.Endpoints)
		}
		if len(received.Addresses) != 1 || received.Addresses[0].Addr != "proxy" {
			c.Errorf("behind a proxy, the child got the addresses %v", received.Addresses)
		}
	})
}

type wrongConfig struct {
	serviceconfig.LoadBalancingConfig
}

// A policy rejects a configuration of the wrong type and continues with its earlier one. If it has
// no earlier configuration, calls fail with the error of the rejection.
func TestConfigOfOtherType(t *testing.T) {
	eachPolicy(t, func(c *policyTest) {
		updateWrongConfig := func() {
			c.Helper()
			err := c.policy.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: wrongConfig{}, ResolverState: c.valid.ResolverState})
			if err == nil || !errors.Is(err, balancer.ErrBadResolverState) || !strings.Contains(err.Error(), "wrongConfig") {
				c.Errorf("error = %v, want ErrBadResolverState with the type", err)
			}
		}
		updateWrongConfig()
		c.want(connectivity.TransientFailure, "wrongConfig")
		c.mustUpdate()
		c.want(connectivity.Connecting, "queue")
		updateWrongConfig()
		c.want(connectivity.Connecting, "queue")
		c.report(connectivity.Connecting, nil)
		c.report(connectivity.Ready, nil)
		before := len(c.cc.States())
		updateWrongConfig()
		c.want(connectivity.Ready, c.wantPick())
		if n := len(c.cc.States()) - before; n != 0 {
			c.Errorf("published %d states, want none", n)
		}
	})
}

// A child that rejects its update counts as failed, and the policy returns and publishes the
// child's error. But if the child is READY or IDLE, the policy continues to use it and returns no
// error.
func TestChildRejectsUpdate(t *testing.T) {
	refusal := status.Error(codes.Internal, "no good")
	eachParent(t, func(c *policyTest) {
		wantRefusal := func(reports ...connectivity.State) {
			c.Helper()
			c.stubs.OnUpdate = func(s *lbtest.Stub, _ balancer.ClientConnState) error {
				for _, state := range reports {
					s.Report(state, nil)
				}
				return refusal
			}
			err := c.update()
			if _, isStatus := status.FromError(err); isStatus || !strings.Contains(err.Error(), "refused its update: "+refusal.Error()) || !errors.Is(err, refusal) {
				c.Errorf("error = %v, want the child's, and no status", err)
			}
			c.want(connectivity.TransientFailure, "refused its update: "+refusal.Error())
		}
		wantStillUsed := func(state connectivity.State, pick string) {
			c.Helper()
			c.report(state, nil)
			c.stubs.OnUpdate = func(*lbtest.Stub, balancer.ClientConnState) error { return refusal }
			if err := c.update(); err != nil {
				c.Errorf("error = %v of a child that is %v, want none", err, state)
			}
			c.want(state, pick)
		}
		wantRefusal()
		wantStillUsed(connectivity.Ready, "child")
		wantRefusal(connectivity.Connecting)
		wantStillUsed(connectivity.Idle, "queue")
		wantRefusal(connectivity.TransientFailure)
		c.stubs.OnUpdate = func(s *lbtest.Stub, _ balancer.ClientConnState) error {
			s.Report(connectivity.TransientFailure, errors.New("down"))
			return nil
		}
		c.mustUpdate()
		c.want(connectivity.TransientFailure, "down")
	})
}

// ErrBadResolverState from a child only requests re-resolution. If the child has also reported a
// failing picker, calls fail with that picker's error.
func TestChildErrorOverridesBadResolverState(t *testing.T) {
	eachParent(t, func(c *policyTest) {
		var childErr error
		c.stubs.OnUpdate = func(s *lbtest.Stub, _ balancer.ClientConnState) error {
			if childErr != nil {
				s.Report(connectivity.TransientFailure, childErr)
			}
			return balancer.ErrBadResolverState
		}
		for i, want := range []string{"refused its update: bad resolver state", "no endpoints here"} {
			if i > 0 {
				childErr = errors.New(want)
			}
			if err := c.update(); !errors.Is(err, balancer.ErrBadResolverState) {
				c.Errorf("error = %v, want ErrBadResolverState", err)
			}
			c.want(connectivity.TransientFailure, want)
		}
	})
}

// refusingConn makes no subchannels.
type refusingConn struct {
	balancer.ClientConn
	err error
}

func (c refusingConn) NewSubConn([]resolver.Address, balancer.NewSubConnOptions) (balancer.SubConn, error) {
	return nil, c.err
}

// A connection, a health check and a subchannel may fail with a status. Calls must not get it.
func TestLeavesFailWithPlainErrors(t *testing.T) {
	final := fmt.Errorf("theirs: %w", status.Error(codes.PermissionDenied, "go away"))
	eachPolicy(t, func(c *policyTest) {
		if c.stubs != nil {
			return
		}
		c.mustUpdate()
		c.report(connectivity.Connecting, nil)
		c.report(connectivity.TransientFailure, final)
		c.want(connectivity.TransientFailure, "go away")
		if sc := c.cc.SubConn("a"); sc.HasHealthListener() {
			sc.Report(connectivity.Ready, nil)
			synctest.Wait()
			sc.ReportHealth(connectivity.TransientFailure, final)
			c.want(connectivity.TransientFailure, "go away")
		}
		p := balancer.Get(c.name).Build(refusingConn{c.cc, final}, balancer.BuildOptions{})
		defer p.Close()
		err := p.UpdateClientConnState(c.valid)
		if _, isStatus := status.FromError(err); isStatus && err != nil {
			c.Errorf("the policy returns the status %v", err)
		}
		c.want(connectivity.TransientFailure, "go away")
	})
}
