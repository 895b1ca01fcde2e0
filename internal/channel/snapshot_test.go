package channel_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/policy/priority"
	"github.com/understudy-lb/understudy/policy/weightedroundrobin"
)

func describe(w shell.Watchable, start time.Time, indent string) string {
	s := w.Snapshot()
	if s == nil {
		return indent + "nothing\n"
	}
	text := fmt.Sprintf("%s%s %v since %v", indent, s.Policy, s.State, s.Since.Sub(start))
	if s.Error != nil {
		text += fmt.Sprintf(", error %v", s.Error)
	}
	switch d := s.Details.(type) {
	case nil:
	case shell.Priority:
		text += ", in use " + d.InUse
	case shell.WeightedTarget:
		text += formatCounts(d.Scheduled())
	case shell.WeightedRoundRobin:
		text += formatCounts(d.Scheduled())
	default:
		text += fmt.Sprintf(", %+v", d)
	}
	text += "\n"
	for _, c := range s.Children {
		text += fmt.Sprintf("%s- %q %q %v", indent, c.Name, c.Title, c.State)
		if c.LastError != nil {
			text += fmt.Sprintf(", last error %v", c.LastError)
		}
		if e, ok := c.Details.(shell.Endpoint); ok {
			text += fmt.Sprintf(", weight %d", e.Weight)
		} else if p, ok := c.Details.(shell.PriorityChild); ok {
			text += fmt.Sprintf(", %v", p.CountsAs)
		} else if c.Details != nil {
			text += fmt.Sprintf(", %+v", c.Details)
		}
		text += "\n"
		if c.Below != nil {
			text += describe(c.Below, start, indent+"  ")
		}
	}
	return text
}

func formatCounts(counts []uint64) string {
	if slices.Max(append(counts, 0)) == 0 {
		return ""
	}
	return fmt.Sprintf(", gave %v", counts)
}

func newTree(t *testing.T, cc *lbtest.ClientConn) balancer.Balancer {
	t.Helper()
	builder := balancer.Get(priority.Name)
	config, err := builder.(balancer.ConfigParser).ParseConfig([]byte(twoPriorities))
	if err != nil {
		t.Fatal(err)
	}
	policy := builder.Build(cc, balancer.BuildOptions{})
	endpoint := func(address string, path ...string) resolver.Endpoint {
		return hierarchy.Set(resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}}, path...)
	}
	state := resolver.State{Endpoints: []resolver.Endpoint{endpoint("a", "p0", "full"), endpoint("b", "p1", "full")}}
	state = stateattr.SetChannel(state, &stateattr.Channel{Target: "file:///x", Names: map[string]string{"p0": "near", "p1": "far"}})
	if err := policy.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: config, ResolverState: state}); err != nil {
		t.Fatal(err)
	}
	return policy
}

// Policies make snapshots only while someone watches the tree.
func TestSnapshotOfTree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		cc := &lbtest.ClientConn{}
		policy := newTree(t, cc)
		root := policy.(shell.Watchable)
		want := func(want string) {
			t.Helper()
			time.Sleep(time.Millisecond) // at most one snapshot is made per millisecond
			synctest.Wait()
			if got := describe(root, start, ""); got != want {
				t.Errorf("the tree is\n%s\nwant\n%s", got, want)
			}
		}
		if got := describe(root, start, ""); got != "nothing\n" {
			t.Errorf("without a watcher the snapshot is\n%s", got)
		}
		stop := root.Watch()
		want(`priority CONNECTING since 0s, in use p0
- "p0" "p0 near" CONNECTING, CONNECTING
  drop CONNECTING since 0s
  - "" "" CONNECTING
    weighted_target CONNECTING since 0s
    - "empty" "" TRANSIENT_FAILURE, last error weighted_round_robin: no endpoints: the resolver returned none, or none with a path to this policy, {Weight:1 CountsAs:TRANSIENT_FAILURE}
      weighted_round_robin TRANSIENT_FAILURE since 0s, error weighted_round_robin: no endpoints: the resolver returned none, or none with a path to this policy
    - "full" "" CONNECTING, {Weight:1 CountsAs:CONNECTING}
      weighted_round_robin CONNECTING since 0s
      - "a" "" CONNECTING, weight 1
`)
		if got := root.Snapshot().Channel.Target; got != "file:///x" {
			t.Errorf("the target is %q, want file:///x", got)
		}
		time.Sleep(time.Second)
		a := cc.SubConn("a")
		a.Report(connectivity.Connecting, nil)
		a.Report(connectivity.TransientFailure, errors.New("refused"))
		want(`priority CONNECTING since 0s, in use p1
- "p0" "p0 near" TRANSIENT_FAILURE, last error weighted_round_robin: no endpoints: the resolver returned none, or none with a path to this policy, TRANSIENT_FAILURE
  drop TRANSIENT_FAILURE since 1.001s, error weighted_round_robin: no endpoints: the resolver returned none, or none with a path to this policy
  - "" "" TRANSIENT_FAILURE, last error weighted_round_robin: no endpoints: the resolver returned none, or none with a path to this policy
    weighted_target TRANSIENT_FAILURE since 1.001s, error weighted_round_robin: no endpoints: the resolver returned none, or none with a path to this policy
    - "empty" "" TRANSIENT_FAILURE, last error weighted_round_robin: no endpoints: the resolver returned none, or none with a path to this policy, {Weight:1 CountsAs:TRANSIENT_FAILURE}
      weighted_round_robin TRANSIENT_FAILURE since 0s, error weighted_round_robin: no endpoints: the resolver returned none, or none with a path to this policy
    - "full" "" TRANSIENT_FAILURE, last error refused, {Weight:1 CountsAs:TRANSIENT_FAILURE}
      weighted_round_robin TRANSIENT_FAILURE since 1.001s, error refused
      - "a" "" TRANSIENT_FAILURE, last error refused, weight 1
- "p1" "p1 far" CONNECTING, CONNECTING
  drop CONNECTING since 1.001s
  - "" "" CONNECTING
    weighted_target CONNECTING since 1.001s
    - "full" "" CONNECTING, {Weight:1 CountsAs:CONNECTING}
      weighted_round_robin CONNECTING since 1.001s
      - "b" "" CONNECTING, weight 1
`)
		below := root.Snapshot().Children[0].Below
		stop()
		stop()
		want("nothing\n")
		if below.Snapshot() != nil {
			t.Error("a child policy keeps a snapshot without a watcher")
		}
		stop = root.Watch()
		policy.Close()
		want("nothing\n")
		stop()
	})
}

func TestSnapshotDoesNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc := &lbtest.ClientConn{}
		policy := newTree(t, cc)
		root := policy.(shell.Watchable)
		stop := root.Watch()
		defer stop()
		synctest.Wait()
		blocked, release := false, make(chan struct{})
		cc.OnUpdate(func(balancer.State) {
			if !blocked {
				blocked = true
				<-release
			}
		})
		a := cc.SubConn("a")
		a.Report(connectivity.Connecting, nil)
		a.Report(connectivity.TransientFailure, errors.New("refused"))
		synctest.Wait()
		if s := root.Snapshot(); !blocked || s == nil || s.State != connectivity.Connecting {
			t.Errorf("stuck: %v, and the snapshot is %+v", blocked, s)
		}
		root.Watch()()
		close(release)
		policy.Close()
	})
}

func TestSnapshotsOfManyEndpointsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		cc := &lbtest.ClientConn{}
		policy := balancer.Get("understudy_weighted_round_robin").Build(cc, balancer.BuildOptions{})
		defer policy.Close()
		var state resolver.State
		for i := range n {
			state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: fmt.Sprint(i)}}})
		}
		if err := policy.UpdateClientConnState(balancer.ClientConnState{ResolverState: state}); err != nil {
			t.Fatal(err)
		}
		watched := policy.(shell.Watchable)
		defer watched.Watch()()
		seen := map[*shell.Snapshot]bool{}
		for _, sc := range cc.SubConns() {
			sc.Report(connectivity.Ready, nil)
			sc.ReportHealth(connectivity.Ready, nil)
			synctest.Wait()
			seen[watched.Snapshot()] = true
		}
		time.Sleep(time.Second)
		synctest.Wait()
		last := watched.Snapshot()
		for _, c := range last.Children {
			if c.State != connectivity.Ready {
				t.Fatalf("the last snapshot has %q in %v, want all READY", c.Name, c.State)
			}
		}
		if len(seen) > 2 {
			t.Errorf("%d snapshots were made at the same time, want at most 2", len(seen))
		}
	})
}

func TestCallsAreRecordedWhileWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc := &lbtest.ClientConn{}
		policy := balancer.Get(weightedroundrobin.Name).Build(cc, balancer.BuildOptions{})
		defer policy.Close()
		state := resolver.State{Endpoints: []resolver.Endpoint{
			{Addresses: []resolver.Address{{Addr: "a"}}}, {Addresses: []resolver.Address{{Addr: "b"}}},
		}}
		if err := policy.UpdateClientConnState(balancer.ClientConnState{ResolverState: state}); err != nil {
			t.Fatal(err)
		}
		for _, sc := range cc.SubConns() {
			sc.Report(connectivity.Ready, nil)
			sc.ReportHealth(connectivity.Ready, nil)
		}
		synctest.Wait()
		pick := func() func(balancer.DoneInfo) {
			result, err := cc.State().Picker.Pick(balancer.PickInfo{})
			if err != nil {
				t.Fatal(err)
			}
			return result.Done
		}
		if pick() != nil {
			t.Error("calls are recorded without a watcher")
		}
		watched := policy.(shell.Watchable)
		stop := watched.Watch()
		time.Sleep(time.Millisecond)
		synctest.Wait()
		for i := range 6 {
			switch done := pick(); i {
			case 0, 1:
				done(balancer.DoneInfo{})
			case 2:
				done(balancer.DoneInfo{Err: errors.New("failed")})
			}
		}
		got := ""
		for _, c := range watched.Snapshot().Children {
			started, ended, failed := c.Details.(shell.Endpoint).Record.Calls()
			got += fmt.Sprintf("%s %d %d %d;", c.Name, started, ended, failed)
		}
		if want := "a 3 1 0;b 3 2 1;"; got != want {
			t.Errorf("calls started, ended and failed: %s want %s", got, want)
		}
		if n := testing.AllocsPerRun(100, func() { pick() }); n != 0 {
			t.Errorf("a pick that is recorded makes %v allocations, want none", n)
		}
		stop()
		synctest.Wait()
		if pick() != nil {
			t.Error("calls are still recorded after the watch has stopped")
		}
	})
}
