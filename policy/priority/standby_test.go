package priority

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

// standby updates a policy with the children a and b. b is a standby with some endpoints in
// locality x, one in y and one in z.
func standby(t *testing.T, many int) *stubbed {
	t.Helper()
	p := newStubbed(t, nil)
	endpoint := func(address string, path ...string) resolver.Endpoint {
		return hierarchy.Set(resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}}, path...)
	}
	state := resolver.State{Endpoints: []resolver.Endpoint{endpoint("a", "a", "x")}}
	for i := range many {
		state.Endpoints = append(state.Endpoints, endpoint(fmt.Sprintf("x%02d", i), "b", "x"))
	}
	state.Endpoints = append(state.Endpoints, endpoint("y", "b", "y"), endpoint("z", "b", "z"))
	if err := p.update(state, `"warmStandby": 1,`, "a", "b"); err != nil {
		t.Fatal(err)
	}
	p.report("a", connectivity.Ready, nil)
	synctest.Wait()
	return p
}

// A standby with many endpoints gets 20 of them, at least one in each locality. It gets all of them
// when it comes into use, and 20 again after childRetention.
func TestLargeStandbyConnectsToFewEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := standby(t, 28)
		sample := p.Get("b").Addresses()
		if len(sample) != 20 || !slices.IsSorted(sample) || !slices.Contains(sample, "y") || !slices.Contains(sample, "z") {
			t.Errorf("the standby has %q, want 20 endpoints, y and z among them", sample)
		}
		p.report("b", connectivity.Ready, nil)
		p.report("a", connectivity.TransientFailure, nil)
		synctest.Wait()
		if all := p.Get("b").Addresses(); len(all) != 30 {
			t.Errorf("the child in use has %d endpoints, want all 30", len(all))
		}
		p.Get("a").Report(connectivity.Ready, nil)
		time.Sleep(15*time.Minute + time.Second)
		synctest.Wait()
		if again := p.Get("b").Addresses(); !slices.Equal(again, sample) {
			t.Errorf("the standby has %q again, want %q", again, sample)
		}
	})
}

func TestSmallStandbyConnectsToAllEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := standby(t, 18)
		if all := p.Get("b").Addresses(); len(all) != 20 {
			t.Errorf("the standby has %d endpoints, want 18 in x, y and z", len(all))
		}
	})
}
