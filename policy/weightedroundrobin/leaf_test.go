package weightedroundrobin

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func stubLeaf(name string) (*lbtest.StubBuilder, balancer.Builder) {
	leaf := &lbtest.StubBuilder{PolicyName: name}
	return leaf, spec(func() balancer.Builder { return leaf }).Builder("wrr")
}

func runWith(t *testing.T, builder balancer.Builder, f func(h *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cc := &lbtest.ClientConn{}
		h := &harness{t: t, cc: cc, policy: builder.Build(cc, balancer.BuildOptions{})}
		defer h.policy.Close()
		f(h)
	})
}

func stubOf(leaf *lbtest.StubBuilder, address string) *lbtest.Stub {
	built := leaf.Built()
	for i := len(built) - 1; i >= 0; i-- {
		if built[i].Addresses()[0] == address {
			return built[i]
		}
	}
	return nil
}

func reportStub(stub *lbtest.Stub, state connectivity.State) {
	err := error(lbtest.PickedStub{ID: stub.Addresses()[0]})
	if state != connectivity.Ready {
		err = fmt.Errorf("%v of %s", state, stub.Addresses()[0])
	}
	stub.CC.UpdateState(balancer.State{ConnectivityState: state, Picker: base.NewErrPicker(err)})
}

func wantUpdates(t *testing.T, leaf *lbtest.StubBuilder, want string) {
	t.Helper()
	var got []string
	for _, stub := range leaf.Built() {
		got = append(got, fmt.Sprintf("%s %d", stub.Addresses()[0], stub.Updates()))
	}
	if got := strings.Join(got, ", "); got != want {
		t.Errorf("updates: %s; want %s", got, want)
	}
}

func TestIdleChildConnects(t *testing.T) {
	leaf, builder := stubLeaf("wrr_idle")
	leaf.OnExitIdle = func(*lbtest.Stub) {
		if bytes.Contains(debug.Stack(), []byte("weightedroundrobin.reportStub(")) {
			t.Error("ExitIdle was called during the report")
		}
	}
	runWith(t, builder, func(h *harness) {
		h.update("", "a b")
		a, b := stubOf(leaf, "a"), stubOf(leaf, "b")
		reportStub(a, connectivity.Idle)
		synctest.Wait()
		reportStub(b, connectivity.TransientFailure)
		synctest.Wait()
		h.wantState(connectivity.Idle, "queue")
		h.policy.ExitIdle()
		synctest.Wait()
		if a.ExitIdles() != 2 || b.ExitIdles() != 0 {
			t.Errorf("ExitIdle calls: %d of the IDLE child, want 2; %d of the other, want 0", a.ExitIdles(), b.ExitIdles())
		}
	})
}

func TestRemovedChildServesUntilNextPicker(t *testing.T) {
	leaf, builder := stubLeaf("wrr_removed")
	runWith(t, builder, func(h *harness) {
		h.update("", "a b")
		a, b := stubOf(leaf, "a"), stubOf(leaf, "b")
		reportStub(a, connectivity.Ready)
		reportStub(b, connectivity.Ready)
		synctest.Wait()
		h.cc.OnUpdate(func(balancer.State) {
			if a.IsClosed() {
				t.Error("closed before the picker without it was published")
			}
		})
		leaf.OnUpdate = func(*lbtest.Stub, balancer.ClientConnState) error {
			reportStub(a, connectivity.TransientFailure) // is ignored
			return nil
		}
		changed := resolver.State{Endpoints: endpoints("b")}
		changed.Attributes = changed.Attributes.WithValue("k", "v")
		h.mustUpdate("", changed)
		if !a.IsClosed() {
			t.Error("not closed")
		}
		h.wantState(connectivity.Ready, "b")
	})
}

// A child refuses its endpoint. The next update must try again. The policy must return an error
// only if all children have failed.
func TestChildError(t *testing.T) {
	leaf, builder := stubLeaf("wrr_error")
	bad := errors.New("bad endpoint")
	leaf.OnUpdate = func(s *lbtest.Stub, _ balancer.ClientConnState) error {
		if s.Addresses()[0] == "a" {
			return bad
		}
		return nil
	}
	runWith(t, builder, func(h *harness) {
		state := resolver.State{Endpoints: endpoints("a b")}
		for _, want := range []string{"a 1, b 1", "a 2, b 1"} {
			if err := h.updateWith("", state); err != nil {
				t.Errorf("error = %v, want none: b is connecting", err)
			}
			wantUpdates(t, leaf, want)
		}
		h.wantState(connectivity.Connecting, "queue")
		reportStub(stubOf(leaf, "b"), connectivity.TransientFailure)
		synctest.Wait()
		state.Endpoints = endpoints("a")
		if err := h.updateWith("", state); !errors.Is(err, bad) {
			t.Errorf("error = %v, want %v", err, bad)
		}
		h.wantState(connectivity.TransientFailure, `fail: weighted_round_robin: child "a" refused its update: bad endpoint`)
	})
}

func TestNewPickerOfReadyChildIsUsed(t *testing.T) {
	leaf, builder := stubLeaf("wrr_new_picker")
	runWith(t, builder, func(h *harness) {
		h.update("", "a b")
		a := stubOf(leaf, "a")
		reportStub(a, connectivity.Ready)
		reportStub(stubOf(leaf, "b"), connectivity.Ready)
		synctest.Wait()
		a.CC.UpdateState(balancer.State{ConnectivityState: connectivity.Ready, Picker: base.NewErrPicker(lbtest.PickedStub{ID: "A"})})
		synctest.Wait()
		h.wantPicks("AbAb")
	})
}

func TestUnchangedEndpointIsNotUpdated(t *testing.T) {
	leaf, builder := stubLeaf("wrr_stays")
	runWith(t, builder, func(h *harness) {
		for i, want := range []string{"a 1, b 1", "a 1, b 1"} {
			state := stateattr.SetChannel(resolver.State{Endpoints: endpoints("a b")}, &stateattr.Channel{Target: "file:///x"})
			state = stateattr.SetLabels(state, stateattr.Labels{Priority: fmt.Sprintf("p%d", i)})
			h.mustUpdate("", state)
			wantUpdates(t, leaf, want)
		}
	})
}
