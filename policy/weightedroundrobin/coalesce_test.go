package weightedroundrobin

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/lb/weighted"
)

// 2,000 endpoints report READY at the same time. The first few reports must be published one by
// one, and all other reports together with the next picker.
func TestManyReportsCauseFewPickers(t *testing.T) {
	const n = 2000
	run(t, func(h *harness) {
		h.mustUpdate("", manyEndpoints(n, 0).ResolverState)
		subConns := h.cc.SubConns()
		for i, sc := range subConns {
			sc.Report(connectivity.Ready, nil)
			sc.ReportHealth(connectivity.Ready, nil)
			synctest.Wait()
			if i == 0 {
				h.wantState(connectivity.Ready, sc.Addresses[0].Addr)
			}
		}
		advance(n * core.PickerInterval)
		if got := len(h.cc.States()); got > core.FewChildren+3 {
			t.Errorf("%d endpoints caused %d pickers", n, got)
		}
		if got := h.cc.State().Picker.(*weighted.Picker).Len(); got != n {
			t.Errorf("picker of %d endpoints, want %d", got, n)
		}
	})
}

func TestLoneReportIsNotDelayed(t *testing.T) {
	const n = 1000
	run(t, func(h *harness) {
		h.mustUpdate("", manyEndpoints(n, 0).ResolverState)
		subConns := h.cc.SubConns()
		for _, sc := range subConns {
			sc.Report(connectivity.Ready, nil)
			sc.ReportHealth(connectivity.Ready, nil)
		}
		advance(time.Second)
		subConns[0].Report(connectivity.Idle, nil)
		synctest.Wait()
		if got := h.cc.State().Picker.(*weighted.Picker).Len(); got != n-1 {
			t.Errorf("picker of %d endpoints, want %d", got, n-1)
		}
		for _, sc := range subConns[1:] {
			sc.Report(connectivity.Idle, nil)
		}
		synctest.Wait()
		h.wantState(connectivity.Connecting, "queue")
	})
}

func TestUpdateIsNotDelayed(t *testing.T) {
	const n = 1000
	run(t, func(h *harness) {
		h.mustUpdate("", manyEndpoints(n, 0).ResolverState)
		for _, sc := range h.cc.SubConns() {
			sc.Report(connectivity.Ready, nil)
			sc.ReportHealth(connectivity.Ready, nil)
		}
		synctest.Wait()
		if err := h.policy.UpdateClientConnState(manyEndpoints(n, 1)); err != nil {
			t.Fatal(err)
		}
		w, first := h.cc.State().Picker.(*weighted.Picker), h.inner().core.Order()[0]
		if w.Len() != n || first.Weight() != 2 {
			t.Errorf("picker of %d endpoints, the first with weight %d; want %d and 2", w.Len(), first.Weight(), n)
		}
	})
}

// A child must get an update if its endpoint's attributes change, but not if only the weight does.
func TestWeightChangeDoesNotUpdateChildren(t *testing.T) {
	leaf, builder := stubLeaf("wrr_weights_alone")
	runWith(t, builder, func(h *harness) {
		h.update("", "a:1 b:1")
		h.update("", "a:5 b:1")
		wantUpdates(t, leaf, "a 1, b 1")
		state := resolver.State{Endpoints: endpoints("a:5 b:1")}
		state.Attributes = state.Attributes.WithValue("k", "v")
		for range 2 {
			h.mustUpdate("", state)
			wantUpdates(t, leaf, "a 2, b 2")
		}
		state.Endpoints = append(endpoints("a:1"), weight.Set(
			resolver.Endpoint{Addresses: []resolver.Address{{Addr: "b", BalancerAttributes: state.Attributes}}}, weight.EndpointInfo{}))
		h.mustUpdate("", state)
		wantUpdates(t, leaf, "a 2, b 3")
	})
}
