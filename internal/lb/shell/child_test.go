package shell

import (
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
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/lb/serial"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

type parent struct {
	Shell
	cc    *lbtest.ClientConn
	child *Child

	mu       sync.Mutex
	reported []string
	resolves int
}

func newParent() *parent {
	p := &parent{cc: &lbtest.ClientConn{}}
	p.ClientConn = p.cc
	p.serial.SetHooks(&serial.Hooks{Begin: func() {}, Flush: p.closeRemoved})
	p.child = p.NewChild("child", Handlers{
		Reported: func(_ *Child, s balancer.State) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.reported = append(p.reported, s.ConnectivityState.String()+" "+lbtest.Pick(s))
		},
		ResolveNow: func(string) { p.resolves++ },
	})
	return p
}

func (p *parent) update(builder balancer.Builder, id string) (err error) {
	policy := lbconfig.Policy{Builder: builder, Config: &lbtest.StubConfig{ID: id}}
	p.serial.Do(func() { err = p.child.update(policy, resolver.State{}) })
	return err
}

func (p *parent) expectReports(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.reported, want) {
		t.Errorf("reported %q, want %q", p.reported, want)
	}
	p.reported = nil
}

func TestReportsReachParentUntilClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &lbtest.StubBuilder{PolicyName: "x"}
		p := newParent()
		if err := p.update(b, "a"); err != nil {
			t.Fatal(err)
		}
		a := b.Get("a")
		a.Report(connectivity.Ready, nil)
		p.expectReports(t, "READY a")
		a.ResolveNow()
		p.serial.Do(p.child.Close)
		a.Report(connectivity.TransientFailure, nil)
		a.ResolveNow()
		p.expectReports(t)
		if _, err := a.CC.NewSubConn([]resolver.Address{{Addr: "a"}}, balancer.NewSubConnOptions{}); err == nil {
			t.Error("a closed policy created a subchannel")
		}
		if a.Closes() != 1 || p.resolves != 1 {
			t.Errorf("closed %d times and passed on %d re-resolutions, want 1 and 1", a.Closes(), p.resolves)
		}
	})
}

// Only our own policies know that elements of paths are used up without being removed. Others may
// have our policies as children in turn.
func TestOtherPoliciesGetStrippedPaths(t *testing.T) {
	p, b := newParent(), &lbtest.StubBuilder{PolicyName: "x"}
	e := hierarchy.Set(resolver.Endpoint{Addresses: []resolver.Address{{Addr: "a"}}}, "child", "below")
	groups, below := hierarchy.Split(resolver.State{Endpoints: []resolver.Endpoint{e}})
	policy := lbconfig.Policy{Builder: b, Config: &lbtest.StubConfig{ID: "x"}}
	p.serial.Do(func() { p.child.Update(policy, WithOnlyEndpoints(groups["child"], below)) })
	got := b.Get("x").LastUpdate().ResolverState
	if path := hierarchy.Path(got.Endpoints[0]); !slices.Equal(path, []string{"below"}) {
		t.Errorf("the policy got the path %q, want the last element", path)
	}
	if groups, _ := hierarchy.Split(got); len(groups["below"]) != 1 || len(got.Addresses) != 1 {
		t.Errorf("a child of the policy gets %v of %v", groups, got.Addresses)
	}
}

func TestReportRacingWithCloseIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &lbtest.StubBuilder{PolicyName: "x"}
		p := newParent()
		p.update(b, "a")
		p.serial.Do(func() {
			b.Get("a").Report(connectivity.Ready, nil)
			p.child.Close()
		})
		p.expectReports(t)
	})
}

func TestUpdateReturnsPolicyError(t *testing.T) {
	want := errors.New("no good")
	b := &lbtest.StubBuilder{PolicyName: "x", OnUpdate: func(*lbtest.Stub, balancer.ClientConnState) error { return want }}
	if err := newParent().update(b, "a"); err != want {
		t.Errorf("error = %v, want %v", err, want)
	}
	p := newParent()
	p.serial.Do(func() {
		if err := p.child.update(lbconfig.Policy{}, resolver.State{}); err == nil {
			t.Error("no error from the update of a child without a policy")
		}
		p.child.ExitIdle()
		p.child.ResolverError(want)
		p.child.Close()
	})
}

// A child changes to a policy of another type. The old policy must stay in use until the new policy
// is no longer CONNECTING, or until the old policy is no longer READY.
func TestGracefulSwitch(t *testing.T) {
	for name, test := range map[string]struct {
		event   func(oldStub, newStub *lbtest.Stub)
		want    []string
		oldKept bool
	}{
		"new one still connecting": {func(_, n *lbtest.Stub) { n.Report(connectivity.Connecting, nil) }, nil, true},
		"old one reports READY":    {func(o, _ *lbtest.Stub) { o.Report(connectivity.Ready, nil) }, []string{"READY old"}, true},
		"new one ready":            {func(_, n *lbtest.Stub) { n.Report(connectivity.Ready, nil) }, []string{"READY new"}, false},
		"new one failed":           {func(_, n *lbtest.Stub) { n.Report(connectivity.TransientFailure, errors.New("x")) }, []string{"TRANSIENT_FAILURE fail: x"}, false},
		"old one lost":             {func(o, _ *lbtest.Stub) { o.Report(connectivity.Connecting, nil) }, []string{"CONNECTING queue"}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			oldBuilder, newBuilder := &lbtest.StubBuilder{PolicyName: "x"}, &lbtest.StubBuilder{PolicyName: "y"}
			p := newParent()
			p.update(oldBuilder, "old")
			oldStub := oldBuilder.Get("old")
			oldStub.Report(connectivity.Ready, nil)
			p.expectReports(t, "READY old")
			p.update(newBuilder, "new")
			newStub := newBuilder.Get("new")
			p.expectReports(t)
			test.event(oldStub, newStub)
			p.expectReports(t, test.want...)
			if oldStub.IsClosed() == test.oldKept || newStub.IsClosed() {
				t.Errorf("%s: old closed: %v, new closed: %v", name, oldStub.IsClosed(), newStub.IsClosed())
			}
			p.serial.Do(p.child.Close)
			if !oldStub.IsClosed() || !newStub.IsClosed() {
				t.Errorf("%s: Close left a policy open", name)
			}
		})
	}
}

// The new policy refuses its first update. When the old policy is no longer READY, calls must fail
// with the error of the new policy, instead of waiting, unless it has accepted another update since.
func TestSwitchToPolicyThatRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		reports, accepts bool
		want             string
	}{
		"and reports nothing":                {false, false, "TRANSIENT_FAILURE fail: no good"},
		"after CONNECTING":                   {true, false, "TRANSIENT_FAILURE fail: no good"},
		"and then accepts":                   {false, true, "CONNECTING queue"},
		"after CONNECTING, and then accepts": {true, true, "CONNECTING queue"},
	} {
		synctest.Test(t, func(t *testing.T) {
			refusal := errors.New("no good")
			oldBuilder := &lbtest.StubBuilder{PolicyName: "x"}
			newBuilder := &lbtest.StubBuilder{PolicyName: "y", OnUpdate: func(s *lbtest.Stub, _ balancer.ClientConnState) error {
				if test.reports {
					s.Report(connectivity.Connecting, nil)
				}
				return refusal
			}}
			p := newParent()
			p.update(oldBuilder, "old")
			oldBuilder.Get("old").Report(connectivity.Ready, nil)
			if err := p.update(newBuilder, "new"); err == nil {
				t.Errorf("%s: the update did not return the new policy's error", name)
			}
			if test.accepts {
				refusal = nil
				p.update(newBuilder, "new")
			}
			p.expectReports(t, "READY old")
			oldBuilder.Get("old").Report(connectivity.Connecting, nil)
			p.expectReports(t, test.want)
			newBuilder.Get("new").Report(connectivity.Ready, nil)
			p.expectReports(t, "READY new")
			p.serial.Do(p.child.Close)
		})
	}
}

// The type of the policy changes again while the second policy is connecting. The third policy must
// replace the second, and the first policy must stay in use.
func TestSwitchAgainWhileSwitching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y, z := &lbtest.StubBuilder{PolicyName: "x"}, &lbtest.StubBuilder{PolicyName: "y"}, &lbtest.StubBuilder{PolicyName: "z"}
		p := newParent()
		p.update(x, "x")
		x.Get("x").Report(connectivity.Ready, nil)
		p.update(y, "y")
		p.update(z, "z")
		p.expectReports(t, "READY x")
		if x.Get("x") == nil || y.Get("y") != nil || z.Get("z") == nil {
			t.Fatal("want x in use, y closed, z pending")
		}
		z.Get("z").Report(connectivity.Ready, nil)
		p.expectReports(t, "READY z")
	})
}

func TestStoppedTimerDoesNotFire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, fired := newParent(), 0
		start := func() {
			p.child.StartTimer(0, time.Second, func() { fired++ })
			if at, isRunning := p.child.TimerEnds(0); !isRunning || time.Until(at) != time.Second {
				t.Errorf("the timer ends in %v, runs: %v; want 1s, true", time.Until(at), isRunning)
			}
		}
		p.serial.Do(func() { start(); p.child.StopTimer(0) })
		time.Sleep(time.Minute)
		p.serial.Do(func() {
			if _, runs := p.child.TimerEnds(0); runs || fired != 0 {
				t.Errorf("a stopped timer runs: %v, fired %d times", runs, fired)
			}
			start()
		})
		time.Sleep(time.Minute)
		p.serial.Do(func() {
			if _, runs := p.child.TimerEnds(0); runs || fired != 1 {
				t.Errorf("a timer runs after its end: %v, fired %d times, want once", runs, fired)
			}
		})
	})
}

// leakyPolicy is a policy that leaves its subchannel open in Close, which gRPC allows.
type leakyPolicy struct{ balancer.Balancer }

type leakyBuilder struct{ listener func(balancer.SubConnState) }

func (b *leakyBuilder) Name() string { return "leaver" }

func (b *leakyBuilder) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	cc.NewSubConn([]resolver.Address{{Addr: "a"}}, balancer.NewSubConnOptions{StateListener: b.listener})
	return leakyPolicy{}
}

func (leakyPolicy) UpdateClientConnState(balancer.ClientConnState) error { return nil }
func (leakyPolicy) Close()                                               {}

func TestLeftoverSubchannelsAreShutDown(t *testing.T) {
	reportCount := 0
	p := newParent()
	p.update(&leakyBuilder{func(balancer.SubConnState) { reportCount++ }}, "")
	sc := p.cc.SubConns()[0]
	sc.Report(connectivity.Connecting, nil)
	p.serial.Do(p.child.Close)
	if !sc.IsShutdown() {
		t.Error("the subchannel is still open")
	}
	sc.Report(connectivity.Idle, nil)
	if reportCount != 1 {
		t.Errorf("the policy received %d reports, want 1: none after Close", reportCount)
	}
}

// Failed must not keep a status error, because a status error would also fail calls that wait for
// ready.
func TestFailedRemovesStatus(t *testing.T) {
	state := Failed(fmt.Errorf("the resolver failed: %w", status.Error(codes.NotFound, "no such thing")))
	_, err := state.Picker.Pick(balancer.PickInfo{})
	if _, ok := status.FromError(err); ok || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("calls get %#v, want a plain error with the text", err)
	}
}

type nilBuilder struct{}

func (nilBuilder) Name() string { return "nobody" }

func (nilBuilder) Build(balancer.ClientConn, balancer.BuildOptions) balancer.Balancer { return nil }

// The type of the policy changes twice: first to a policy that is pending, and then to a policy
// whose builder returns nil. The pending policy must be closed. If the type changes back to that of
// the pending policy, a new policy of this type must be built.
func TestSwitchToPolicyThatIsNotBuilt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := &lbtest.StubBuilder{PolicyName: "x"}, &lbtest.StubBuilder{PolicyName: "y"}
		p := newParent()
		p.update(x, "x")
		x.Get("x").Report(connectivity.Ready, nil)
		p.update(y, "y")
		if err := p.update(nilBuilder{}, ""); err == nil {
			t.Error("no error for a builder that returns no policy")
		}
		p.update(y, "again")
		if x.Get("x") == nil || x.Get("again") != nil || y.Get("again") == nil {
			t.Errorf("x received the configuration of y")
		}
		p.expectReports(t, "READY x")
		p.serial.Do(p.child.Close)
	})
}
