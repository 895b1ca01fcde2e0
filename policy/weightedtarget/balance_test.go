package weightedtarget

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// updateBalanced sends an update that balances calls between zones. Each target, such as "a=3", is
// alone in its own zone and has the given capacity. The client is in the first zone.
func (h *harness) updateBalanced(t *testing.T, targets string) {
	t.Helper()
	var list, zones []string
	var state resolver.State
	for target := range strings.FieldsSeq(targets) {
		name, capacity, _ := strings.Cut(target, "=")
		list = append(list, fmt.Sprintf(`%q: {"weight": 1, "zone": %q, "capacity": %s, "childPolicy": [{%q: {"id": %q}}]}`, name, name, capacity, h.builder.PolicyName, name))
		zones = append(zones, fmt.Sprintf(`%q: {"callers": 1}`, name))
		state.Endpoints = append(state.Endpoints, hierarchy.Set(resolver.Endpoint{Addresses: []resolver.Address{{Addr: "of " + name}}}, name))
	}
	c, err := parseConfig(fmt.Appendf(nil, `{"targets": {%s}, "balance": {"own": %q, "zones": {%s}}}`, strings.Join(list, ","), targets[:1], strings.Join(zones, ",")))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.policy.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: c, ResolverState: state}); err != nil {
		t.Fatal(err)
	}
}

// failedSharePicker is the picker of a READY child. share is the share of the child's endpoints
// that have failed.
type failedSharePicker struct {
	balancer.Picker
	share float64
}

func (f failedSharePicker) FailedShare() float64 { return f.share }

func (h *harness) reportFailedShare(name string, share float64) {
	picker := base.NewErrPicker(lbtest.PickedStub{ID: name})
	h.builder.Get(name).CC.UpdateState(balancer.State{ConnectivityState: connectivity.Ready, Picker: failedSharePicker{picker, share}})
	synctest.Wait()
}

func (h *harness) distribution() string {
	state := h.cc.State()
	if state.ConnectivityState != connectivity.Ready {
		return state.ConnectivityState.String()
	}
	counts := make(map[string]int)
	for range 2000 {
		counts[lbtest.Pick(state)]++
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%s %.0f", name, math.Round(float64(counts[name])/20)))
	}
	return strings.Join(all, " ")
}

// A zone loses endpoints. Some of its calls must then go to a zone with spare capacity, whose
// target is created only then. The target must be kept for 15 minutes after it was last needed.
func TestBalanceFollowsFailures(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		want := func(what, want string) {
			t.Helper()
			var created []string
			for _, name := range []string{"a", "b", "c"} {
				if stub := h.builder.Get(name); stub != nil && !stub.IsClosed() {
					created = append(created, name)
				}
			}
			if got := h.distribution() + "; " + strings.Join(created, " "); got != want {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
		}
		h.updateBalanced(t, "a=3 b=2 c=1")
		h.report("a", connectivity.Ready)
		want("no failure", "a 100; a")
		h.reportFailedShare("a", 2./3)
		want("2/3 of a have failed, b connects", "a 100; a b")
		if got := h.builder.Get("b").Addresses(); !slices.Equal(got, []string{"of b"}) {
			t.Errorf("b has the endpoints %q, want its own", got)
		}
		h.report("b", connectivity.Ready)
		want("b is connected", "a 75 b 25; a b")
		h.report("a", connectivity.TransientFailure)
		want("a has failed", "b 100; a b")
		h.report("a", connectivity.Ready)
		want("a is READY again", "a 100; a b")
		time.Sleep(15*time.Minute - time.Second)
		synctest.Wait()
		want("b is kept", "a 100; a b")
		h.report("a", connectivity.TransientFailure)
		h.report("a", connectivity.Ready)
		time.Sleep(15*time.Minute - time.Second)
		want("b is kept for 15 minutes after it last had a share", "a 100; a b")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		want("b is not needed", "a 100; a")
		h.updateBalanced(t, "a=1 b=2 c=3")
		h.report("c", connectivity.Ready)
		want("an update changes the shares immediately", "a 50 c 50; a c")
		h.update("a=1 b=1 c=2", "")
		h.report("b", connectivity.Ready)
		want("an update without balance", "a 25 b 25 c 50; a b c")
	})
}

func TestTargetFailsDuringUpdate(t *testing.T) {
	for name, update := range map[string]func(*lbtest.Stub) error{
		"refuses": func(*lbtest.Stub) error { return errors.New("no good") },
		"reports": func(s *lbtest.Stub) error { s.Report(connectivity.TransientFailure, errors.New("down")); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *harness) {
				h.builder.OnUpdate = func(s *lbtest.Stub, _ balancer.ClientConnState) error {
					if s.ID() == "b" {
						return update(s)
					}
					return nil
				}
				h.updateBalanced(t, "a=3 b=3 c=3")
				h.report("a", connectivity.Ready)
				h.reportFailedShare("a", 1./3)
				if got := h.distribution(); got != "a 100" {
					t.Errorf("calls: %s, want all in a because b has failed", got)
				}
				if h.builder.Get("c") == nil {
					t.Error("c was not created, or was closed immediately")
				}
				time.Sleep(15*time.Minute + time.Second)
				synctest.Wait()
				if h.builder.Get("c") != nil {
					t.Error("c is kept without a share")
				}
			})
		})
	}
}

// One report gives a target a share and takes it away again. The target must be closed after its
// retention time.
func TestTargetLosesShareDuringUpdate(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.updateBalanced(t, "a=3 b=3 d=4")
		h.report("a", connectivity.Ready)
		h.report("d", connectivity.Ready)
		d := h.builder.Get("d")
		h.updateBalanced(t, "a=3 b=3 d=3")
		h.builder.OnUpdate = func(s *lbtest.Stub, _ balancer.ClientConnState) error {
			if s.ID() == "b" {
				return errors.New("no good")
			}
			return nil
		}
		h.reportFailedShare("a", 1./3)
		h.report("a", connectivity.Ready)
		time.Sleep(time.Hour)
		synctest.Wait()
		if !d.IsClosed() {
			t.Error("d is still open after an hour without a share")
		}
	})
}

// A target without a share gets calls, because no other target is READY. It must be kept as long as
// it gets calls.
func TestTargetWithoutShareIsKeptWhileInUse(t *testing.T) {
	inBubble(t, func(t *testing.T, h *harness) {
		h.updateBalanced(t, "a=3 b=2 c=1")
		h.report("a", connectivity.Ready)
		h.reportFailedShare("a", 2./3)
		h.report("b", connectivity.Ready)
		h.report("a", connectivity.Ready)
		time.Sleep(15*time.Minute - time.Second)
		h.report("a", connectivity.Connecting)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := h.distribution(); got != "b 100" || h.builder.Get("b") == nil {
			t.Errorf("calls: %s; b is open: %v, want all calls to go to b while a connects", got, h.builder.Get("b") != nil)
		}
		h.report("a", connectivity.Ready)
		time.Sleep(15*time.Minute + time.Second)
		synctest.Wait()
		if h.builder.Get("b") != nil {
			t.Error("b is still open 15 minutes after a became READY again")
		}
	})
}
