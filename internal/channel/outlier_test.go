package channel_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// fleet is a fake channel with the policies of a target. Connection attempts to endpoints in
// pending do not end, and calls to endpoints in failing fail.
type fleet struct {
	t       *testing.T
	cc      *lbtest.ClientConn
	policy  balancer.Balancer
	failing map[string]bool
	pending map[string]bool
	targets []target
}

// inFleet calls f with a fleet. The first priority has sizes[0] endpoints named a0, a1 and so on.
// The second priority has sizes[1] endpoints named b0, b1 and so on.
func inFleet(t *testing.T, f func(h *fleet), sizes ...int) {
	t.Helper()
	inFleetWith(t, recommended, f, sizes...)
}

func inFleetWith(t *testing.T, settings topology.Settings, f func(h *fleet), sizes ...int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newFleet(t, settings, sizes...)
		defer h.policy.Close()
		f(h)
	})
}

func newFleet(t *testing.T, settings topology.Settings, sizes ...int) *fleet {
	t.Helper()
	h := &fleet{t: t, failing: map[string]bool{}}
	h.start(settings, sizes...)
	return h
}

func (h *fleet) start(settings topology.Settings, sizes ...int) {
	h.t.Helper()
	h.cc = &lbtest.ClientConn{}
	h.policy = balancer.Get("understudy_priority").Build(h.cc, balancer.BuildOptions{})
	for i, n := range sizes {
		target := target{Name: string(rune('a' + i))}
		for j := range n {
			address := resolver.Address{Addr: fmt.Sprintf("%s%d", target.Name, j)}
			target.Endpoints = append(target.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{address}})
		}
		h.targets = append(h.targets, target)
	}
	h.update(joined(h.t, settings, h.targets))
}

type target struct {
	Name      string
	Endpoints []resolver.Endpoint
}

func plain(targets []target) (trees []topology.Tree) {
	for _, t := range targets {
		trees = append(trees, topology.Plain(t.Name, "", t.Endpoints))
	}
	return trees
}

func joined(t *testing.T, settings topology.Settings, targets []target) topology.Update {
	t.Helper()
	policies, err := topology.NewPolicies(settings)
	if err != nil {
		t.Fatal(err)
	}
	return policies.Combine(plain(targets)...)
}

func (h *fleet) update(tree topology.Update) {
	h.t.Helper()
	if err := h.policy.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: tree.Config(), ResolverState: resolver.State{Endpoints: tree.Endpoints}}); err != nil {
		h.t.Fatal(err)
	}
	h.settle()
}

func (h *fleet) settle() {
	synctest.Wait()
	for _, sc := range h.cc.LiveSubConns() {
		if sc.Connects() > 0 && !sc.HasHealthListener() && !h.pending[sc.Addresses[0].Addr] {
			sc.Report(connectivity.Ready, nil)
			synctest.Wait()
			sc.ReportHealth(connectivity.Ready, nil)
			synctest.Wait()
		}
	}
}

func (h *fleet) call() (endpoint string, failed bool) {
	h.t.Helper()
	defer h.settle()
	defer time.Sleep(5 * time.Millisecond)
	result, err := h.cc.State().Picker.Pick(balancer.PickInfo{})
	if err != nil {
		h.t.Fatal(err)
	}
	return h.end(result)
}

// end ends a call.
func (h *fleet) end(result balancer.PickResult) (endpoint string, failed bool) {
	endpoint = result.SubConn.(*lbtest.SubConn).Addresses[0].Addr
	info := balancer.DoneInfo{BytesSent: true, BytesReceived: true}
	if failed = h.failing[endpoint]; failed {
		info.Err = status.Error(codes.Internal, "broken")
	}
	if result.Done != nil {
		result.Done(info)
	}
	return endpoint, failed
}

func (h *fleet) calls(d time.Duration) (counts map[string]int, failed int) {
	counts = map[string]int{}
	for range d / (5 * time.Millisecond) {
		endpoint, failedCall := h.call()
		counts[endpoint[:1]]++
		if failedCall {
			failed++
		}
	}
	return counts, failed
}

// A priority that answers only with errors loses its calls within a second, and then gets only
// probes, at most one a minute. After it has recovered, it has nearly all its calls again within the
// minute to the next probe and the half minute in which its share grows.
func TestPriorityReturnsErrors(t *testing.T) {
	inFleet(t, func(h *fleet) {
		if counts, failed := h.calls(time.Second); counts["a"] != 200 || failed > 0 {
			t.Fatalf("before: calls %v, %d failed", counts, failed)
		}
		h.failing["a0"], h.failing["a1"] = true, true
		broken := time.Now()
		for {
			if endpoint, _ := h.call(); endpoint[:1] == "b" {
				break
			}
		}
		if elapsed := time.Since(broken); elapsed > time.Second {
			t.Errorf("the next priority got calls after %v, want at most 1 s", elapsed)
		}
		h.calls(20 * time.Second)
		counts, failed := h.calls(30 * time.Minute)
		t.Logf("in half an hour %d of %d calls failed", failed, counts["a"]+counts["b"])
		if percent := 100 * float64(failed) / float64(counts["a"]+counts["b"]); percent > 0.02 || failed == 0 {
			t.Errorf("%.2f %% of the calls failed, want some and at most 0.02 %%", percent)
		}
		clear(h.failing)
		repaired := time.Now()
		for last := ""; last != "a0" && last != "a1" || h.share() < 0.9; {
			last, _ = h.call()
		}
		if elapsed := time.Since(repaired); elapsed > 90*time.Second {
			t.Errorf("the priority was back after %v, want at most a minute and a half", elapsed)
		}
	}, 2, 2)
}

func (h *fleet) share() float64 {
	counts, _ := h.calls(50 * time.Millisecond)
	return float64(counts["a"]) / 10
}

// An endpoint whose calls fail keeps them while the only other endpoint is NOT_SERVING.
func TestOtherEndpointIsNotServing(t *testing.T) {
	inFleet(t, func(h *fleet) {
		h.cc.SubConn("a1").ReportHealth(connectivity.TransientFailure, errors.New("NOT_SERVING"))
		h.settle()
		h.failing["a0"] = true
		if counts, failed := h.calls(time.Minute); failed != counts["a"] {
			t.Errorf("%d of %d calls failed", failed, counts["a"])
		}
		h.cc.SubConn("a1").ReportHealth(connectivity.Ready, nil)
		h.calls(20 * time.Second)
		if counts, failed := h.calls(10 * time.Second); failed > 10 {
			t.Errorf("%d of %d calls failed though one endpoint of two answers", failed, counts["a"])
		}
	}, 2)
}
