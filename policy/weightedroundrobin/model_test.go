package weightedroundrobin

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func aggregateState(children map[string]connectivity.State) connectivity.State {
	for _, state := range []connectivity.State{connectivity.Ready, connectivity.Connecting, connectivity.Idle} {
		for _, s := range children {
			if s == state {
				return state
			}
		}
	}
	return connectivity.TransientFailure
}

func TestStateAndPicksMatchModel(t *testing.T) {
	for seed := range uint64(20) {
		leaf, builder := stubLeaf("wrr_model")
		runWith(t, builder, func(h *harness) {
			random := rand.New(rand.NewPCG(seed, 5))
			children := map[string]connectivity.State{}
			for range 200 {
				if len(children) == 0 || random.IntN(10) == 0 {
					children = changeEndpoints(h, random, children)
				} else {
					name := randomName(random, children)
					children[name] = connectivity.State(random.IntN(4))
					reportStub(stubOf(leaf, name), children[name])
				}
				synctest.Wait()
				checkState(h, children)
			}
		})
	}
}

func changeEndpoints(h *harness, random *rand.Rand, before map[string]connectivity.State) map[string]connectivity.State {
	list, after := "", map[string]connectivity.State{}
	for _, i := range random.Perm(6)[:1+random.IntN(6)] {
		name := string(rune('a' + i))
		list += " " + name
		after[name] = connectivity.Connecting
		if state, known := before[name]; known {
			after[name] = state
		}
	}
	h.update("", list)
	return after
}

func randomName(random *rand.Rand, children map[string]connectivity.State) string {
	for {
		name := string(rune('a' + random.IntN(6)))
		if _, known := children[name]; known {
			return name
		}
	}
}

func checkState(h *harness, children map[string]connectivity.State) {
	h.t.Helper()
	want := aggregateState(children)
	state := h.cc.State()
	if state.ConnectivityState != want {
		h.t.Fatalf("state = %v with children %v, want %v", state.ConnectivityState, children, want)
	}
	switch want {
	case connectivity.Ready:
		for range 7 {
			if name := lbtest.Pick(state); children[name] != connectivity.Ready {
				h.t.Fatalf("picked %s of %v", name, children)
			}
		}
	case connectivity.TransientFailure:
		if _, err := state.Picker.Pick(balancer.PickInfo{}); err == nil || err == balancer.ErrNoSubConnAvailable {
			h.t.Fatalf("a failing policy's pick: %v", err)
		}
	default:
		if got := lbtest.Pick(state); got != "queue" {
			h.t.Fatalf("pick = %s in state %v, want queue", got, want)
		}
	}
}
