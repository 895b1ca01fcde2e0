package outlierdetection

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/testing/outlierscenario"
)

// A subchannel's address has attributes that no listed endpoint has. The subchannel must belong to
// the only endpoint with the same Addr.
func TestSubchannelWithOtherAttributes(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.Update(consecutiveConfig(), []string{"a", "b"})
		child := h.builder.built[0]
		conn, err := child.cc.NewSubConn([]resolver.Address{{Addr: "a", Attributes: attributes.New("k", "v")}}, balancer.NewSubConnOptions{})
		if err != nil {
			t.Fatal(err)
		}
		child.conns["again"] = conn
		h.fail("again")
		h.wantReceived("a TRANSIENT_FAILURE")
	})
}

type incomparable []string

func TestSameAddresses(t *testing.T) {
	plain := resolver.Address{Addr: "proxy"}
	named := resolver.Address{Addr: "proxy", ServerName: "a"}
	tagged := resolver.Address{Addr: "proxy", Attributes: attributes.New("to", "a")}
	incomparable1, incomparable2 := resolver.Address{Addr: "proxy", Attributes: attributes.New("to", incomparable{"a"})}, resolver.Address{Addr: "proxy", Attributes: attributes.New("to", incomparable{"a"})}
	for _, test := range []struct {
		a, b resolver.Address
		want bool
	}{{plain, plain, true}, {named, named, true}, {tagged, tagged, true}, {plain, named, false}, {plain, tagged, false}, {incomparable1, incomparable2, false}} {
		if got := same(test.a, test.b); got != test.want {
			t.Errorf("%v and %v: %v, want %v", test.a, test.b, got, test.want)
		}
	}
}

// One outlier detection policy is the child of another. Both policies must count calls, whichever
// of them is enabled first.
func TestNestedPolicies(t *testing.T) {
	for _, innerFirst := range []bool{false, true} {
		inTree(t, "understudy_weighted_round_robin", func(h *tree) {
			update := func(outer, below core.Config) {
				c := configOf(outer, h.child)
				c.ChildPolicy = lbconfig.Policy{Builder: newBuilder(Name), Config: configOf(below, h.child)}
				state := balancer.ClientConnState{BalancerConfig: c, ResolverState: resolver.State{Endpoints: endpointsOf("a", "b")}}
				if err := h.policy.UpdateClientConnState(state); err != nil {
					t.Fatal(err)
				}
				h.cc.CompleteConnects(nil)
			}
			disabled := outlierscenario.Default()
			update(disabled, disabled)
			h.want(h.calls(10, "a"), "map[a:5 b:5]")
			if innerFirst {
				update(disabled, consecutiveConfig())
			} else {
				update(consecutiveConfig(), disabled)
			}
			h.want(h.calls(20, "a"), "map[a:5 b:15]")
		})
	}
}

func TestCallsAreNotCountedWithoutAlgorithm(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.Update(outlierscenario.Default(), []string{"a"})
		result, err := h.cc.State().Picker.Pick(balancer.PickInfo{Ctx: context.WithValue(t.Context(), endpointKey{}, "a")})
		if err != nil || result.Done != nil {
			t.Errorf("a pick has a Done: %v, %v", result.Done != nil, err)
		}
	})
}

type downPicker struct{ balancer.Picker }

func (downPicker) Failure() error { return errors.New("down") }

// A picker that wraps the child's picker must have the same Failure.
func TestWrappedPickerKeepsFailure(t *testing.T) {
	if err := shell.FailureOf(&picker{child: downPicker{}}); err == nil || err.Error() != "down" {
		t.Errorf("fails with %v, want the child's error", err)
	}
}
