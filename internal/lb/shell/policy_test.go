package shell

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/lb/live"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

type config struct {
	serviceconfig.LoadBalancingConfig
	child lbconfig.Policy
}

// policy is a policy with one child. It publishes the state of the child.
type policy struct {
	*Shell
	child      *Child
	goroutines []string // the goroutine of each publication
	watched    []bool
}

func (p *policy) Begin(c *config, state resolver.State) { p.child.Update(c.child, state) }
func (p *policy) End()                                  {}
func (p *policy) ExitIdle()                             { p.child.ExitIdle() }

func (p *policy) Children(yield func(name string, c Below) bool) {
	if p.child.Exists() {
		yield("child", p.child)
	}
}

func (p *policy) State() balancer.State {
	p.goroutines = append(p.goroutines, goroutine())
	return p.child.State()
}

func (p *policy) Watched(on bool) {
	p.watched = append(p.watched, on)
	p.Publish()
}

func goroutine() string {
	buf := make([]byte, 64)
	name, _, _ := strings.Cut(string(buf[:runtime.Stack(buf, false)]), "[")
	return name
}

// newTower builds a chain of policies, each of which is the parent of the next. The first policy is
// the topmost, and stub is the child of the last.
func newTower(t *testing.T, height int) (top balancer.Balancer, policies []*policy, stub *lbtest.Stub, cc *lbtest.ClientConn) {
	t.Helper()
	return newTowerOn(t, height, nil)
}

// newTowerOn is like newTower, for a channel that is shown on the debug page.
func newTowerOn(t *testing.T, height int, channel *live.Channel) (top balancer.Balancer, policies []*policy, stub *lbtest.Stub, cc *lbtest.ClientConn) {
	t.Helper()
	stubs := &lbtest.StubBuilder{PolicyName: "stub"}
	below := lbconfig.Policy{Builder: stubs, Config: &lbtest.StubConfig{ID: "stub"}}
	for i := range height {
		spec := Spec[config]{Name: fmt.Sprintf("test%d", i), New: func(s *Shell) Policy[config] {
			p := &policy{Shell: s}
			p.child = s.NewChild("child", Handlers{Reported: func(*Child, balancer.State) { p.Publish() }})
			policies = append(policies, p)
			return p
		}}
		below = lbconfig.Policy{Builder: spec.Builder(spec.Name), Config: &config{child: below}}
	}
	cc = &lbtest.ClientConn{}
	top = below.Builder.Build(cc, balancer.BuildOptions{})
	state := resolver.State{Endpoints: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "a"}}}}}
	if channel != nil {
		state = stateattr.SetChannel(state, &stateattr.Channel{Live: channel})
	}
	if err := top.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: below.Config, ResolverState: state}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return top, policies, stubs.Get("stub"), cc
}

// All policies must handle a report on one goroutine, because each goroutine would need a large
// stack.
func TestReportUsesOneGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		top, policies, stub, cc := newTower(t, 3)
		defer top.Close()
		if got := stub.LastUpdate().ResolverState.Addresses; len(got) != 1 || got[0].Addr != "a" {
			t.Errorf("the policy of another module got the addresses %v, want the endpoint's", got)
		}
		for _, p := range policies {
			p.goroutines = nil
		}
		stub.Report(connectivity.Ready, nil)
		synctest.Wait()
		if state := cc.State(); state.ConnectivityState != connectivity.Ready {
			t.Fatalf("the state is %v, want READY", state.ConnectivityState)
		}
		var all []string
		for _, p := range policies {
			all = append(all, p.goroutines...)
		}
		if len(all) != 3 || len(slices.Compact(all)) != 1 {
			t.Errorf("the policies published on %q, want all on one", all)
		}
	})
}

// A policy must be notified when watching begins and ends. A state that it then publishes must be
// published immediately.
func TestWatchedPoliciesPublish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		top, policies, _, _ := newTower(t, 2)
		defer top.Close()
		if unwatch := policies[0].unwatch; unwatch != nil { // another test has enabled the debug page
			unwatch()
			synctest.Wait()
			policies[0].watched, policies[1].watched = nil, nil
		}
		expectWatched := func(watched ...bool) {
			t.Helper()
			synctest.Wait()
			for i, p := range policies {
				if !slices.Equal(p.watched, watched) || len(p.goroutines) == 0 {
					t.Errorf("policy %d was watched %v and published %d states, want %v and some", i, p.watched, len(p.goroutines), watched)
				}
				p.goroutines = nil
			}
		}
		expectWatched()
		stop := top.(Watchable).Watch()
		expectWatched(true)
		time.Sleep(time.Second)
		stop()
		expectWatched(true, false)
		defer top.(Watchable).Watch()()
		synctest.Wait()
		if top.Close(); top.(Watchable).Snapshot() != nil {
			t.Error("a closed policy has a snapshot")
		}
	})
}

// A snapshot must contain the time of the last change of state, and the last error with its time.
func TestSnapshotTimes(t *testing.T) {
	live.Enable()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		top, policies, stub, _ := newTower(t, 1)
		defer top.Close()
		defer policies[0].Watch()()
		expectTimes := func(since, failed time.Duration, why error) {
			t.Helper()
			time.Sleep(time.Second / 2)
			synctest.Wait()
			c := policies[0].Snapshot().Children[0]
			if got := c.Since.Sub(start); got != since || c.LastError != why {
				t.Errorf("%v since %v, last error %v, want since %v, %v", c.State, got, c.LastError, since, why)
			}
			if failed != 0 && c.FailedAt.Sub(start) != failed || failed == 0 && !c.FailedAt.IsZero() {
				t.Errorf("failed after %v, want %v", c.FailedAt.Sub(start), failed)
			}
			time.Sleep(time.Second / 2)
		}
		stub.Report(connectivity.Connecting, nil)
		expectTimes(0, 0, nil)
		stub.Report(connectivity.TransientFailure, errors.New("refused"))
		expectTimes(time.Second, time.Second, ErrUnknownFailure)
		stub.Report(connectivity.TransientFailure, errors.New("refused"))
		expectTimes(time.Second, 2*time.Second, ErrUnknownFailure)
		stub.Report(connectivity.Ready, nil)
		expectTimes(3*time.Second, 2*time.Second, ErrUnknownFailure)
	})
}

func TestOnlyWatchedPolicyIsBusy(t *testing.T) {
	s := &Shell{}
	for watchers := range int64(2) {
		s.watchers.Store(watchers)
		s.begin()
		if busy := !s.Busy().IsZero(); busy != (watchers > 0) {
			t.Errorf("with %d watchers, busy: %v", watchers, busy)
		}
	}
}

// The debug page must have the topmost policy of a channel and, after its Close, its last tree.
func TestClosedPolicyLeavesTree(t *testing.T) {
	live.Enable()
	synctest.Test(t, func(t *testing.T) {
		channel := live.New(t.Name(), func() []live.Source { return nil })
		defer channel.Stop()
		view := func() live.View {
			all := live.Channels()
			return all[slices.IndexFunc(all, func(v live.View) bool { return v.Channel == channel })]
		}
		top, policies, _, _ := newTowerOn(t, 2, channel)
		if view().Root != policies[0].Shell {
			t.Errorf("the root is %v, want the topmost policy", view().Root)
		}
		top.Close()
		tree, _ := view().Tree.(*Tree)
		if tree == nil || tree.Snapshot == nil || len(tree.Children) != 1 || tree.Below[0].Policy != "test0" || view().Root != nil {
			t.Errorf("after Close, the root is %v and the tree %+v; want none and the last", view().Root, tree)
		}
	})
}

// A policy without children must fail calls with the resolver's error, or with that of an update
// without a configuration. A policy with children must pass the resolver's error to them instead.
// ExitIdle must also reach the children.
func TestResolverError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc := &lbtest.ClientConn{}
		noChildren := Spec[config]{Name: "childless", New: func(s *Shell) Policy[config] {
			return &policy{Shell: s, child: s.NewChild("", Handlers{})}
		}}.Builder("childless").Build(cc, balancer.BuildOptions{})
		noChildren.ResolverError(errors.New("gone"))
		synctest.Wait()
		if got := lbtest.Pick(cc.State()); got != "fail: childless: the resolver failed: gone" {
			t.Errorf("without children, calls get %q", got)
		}
		err := noChildren.UpdateClientConnState(balancer.ClientConnState{})
		if got := lbtest.Pick(cc.State()); !errors.Is(err, balancer.ErrBadResolverState) || got != "fail: "+err.Error() {
			t.Errorf("without a configuration, the update returns %v and calls get %q", err, got)
		}
		noChildren.Close()
		top, _, stub, cc := newTower(t, 2)
		defer top.Close()
		before := len(cc.States())
		top.ResolverError(errors.New("gone"))
		top.ExitIdle()
		synctest.Wait()
		if len(stub.ResolverErrors()) != 1 || stub.ExitIdles() != 1 || len(cc.States()) != before {
			t.Errorf("the child got %d errors and %d ExitIdle calls, and %d states were published; want 1, 1 and 0", len(stub.ResolverErrors()), stub.ExitIdles(), len(cc.States())-before)
		}
	})
}

// The first error that is not balancer.ErrBadResolverState is returned, with the number of others.
func TestJoinedRefusals(t *testing.T) {
	bad, other := errors.New("no good"), balancer.ErrBadResolverState
	for _, test := range []struct {
		given  refusals
		want   string
		target error
	}{
		{refusals{bad}, "no good", bad},
		{refusals{bad, bad}, "no good (and 1 more)", bad},
		{refusals{other, bad}, "no good (and 1 more)", bad},
		{refusals{other, other}, other.Error(), other},
	} {
		err := test.given.join()
		if err == nil || err.Error() != test.want || !errors.Is(err, test.target) {
			t.Errorf("%v: error = %v, want %s", test.given, err, test.want)
		}
		if (err == other) != (test.target == other) { // gRPC compares with ==
			t.Errorf("%v: error = %v; it must equal ErrBadResolverState only if that is wanted", test.given, err)
		}
	}
}

// An update must not return the errors of the previous update.
func TestUpdateDropsPreviousErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stubs := &lbtest.StubBuilder{PolicyName: "stub"}
		updateError := balancer.ErrBadResolverState
		stubs.OnUpdate = func(*lbtest.Stub, balancer.ClientConnState) error { return updateError }
		p := Spec[config]{Name: "test", New: func(s *Shell) Policy[config] {
			p := &policy{Shell: s}
			p.child = s.NewChild("child", Handlers{Reported: func(*Child, balancer.State) { p.Publish() }, Refused: func(*Child, balancer.State) {}})
			return p
		}}.Builder("test").Build(&lbtest.ClientConn{}, balancer.BuildOptions{})
		defer p.Close()
		update := func() error {
			return p.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: &config{child: lbconfig.Policy{Builder: stubs}}})
		}
		updateError = nil
		if err := update(); err != nil {
			t.Fatal(err)
		}
		stubs.Built()[0].Report(connectivity.TransientFailure, errors.New("down"))
		synctest.Wait()
		updateError = balancer.ErrBadResolverState
		if err := update(); err != balancer.ErrBadResolverState {
			t.Errorf("error = %v, want ErrBadResolverState itself", err)
		}
		updateError = nil
		if err := update(); err != nil {
			t.Errorf("the next update returns %v", err)
		}
	})
}
