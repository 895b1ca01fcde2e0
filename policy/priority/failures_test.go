package priority

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/policy/hierarchy"
)

// If the source knows why a child has failed, calls must fail with the source's error. The error
// must not contain the time since the connections failed, which is unrelated.
func TestSourceErrorHasNoFailureDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newStubbed(t, nil)
		update := func(failures map[string]string) {
			_ = p.update(stateattr.SetChannel(resolver.State{}, &stateattr.Channel{Failures: failures}), "", "a")
		}
		update(nil)
		p.report("a", connectivity.TransientFailure, errors.New("refused"))
		time.Sleep(45 * time.Second)
		synctest.Wait()
		update(nil)
		if got := lbtest.Pick(p.cc.State()); !strings.Contains(got, "refused (failing for 45 s)") {
			t.Errorf("calls get %q, want the time since the connection failed", got)
		}
		update(map[string]string{"a": "cluster \"a\" is gone"})
		if got := lbtest.Pick(p.cc.State()); !strings.HasSuffix(got, `cluster "a" is gone`) {
			t.Errorf("calls get %q, want only the source's error", got)
		}
	})
}

// A priority whose endpoints all drained gets others: it is not said to have none while they connect.
func TestReasonAfterEndpointsAreMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newStubbed(t, nil)
		update := func(endpoints []resolver.Endpoint, failures map[string]string) {
			state := stateattr.SetChannel(resolver.State{Endpoints: endpoints}, &stateattr.Channel{Failures: failures})
			_ = p.update(state, "", "a")
		}
		update(nil, map[string]string{"a": "no endpoint can take calls: 1 draining"})
		p.Get("a").CC.UpdateState(shell.Failed(fmt.Errorf("weighted_round_robin: %w", shell.ErrNoEndpoints)))
		synctest.Wait()
		if got := lbtest.Pick(p.cc.State()); !strings.HasSuffix(got, "1 draining") {
			t.Errorf("calls get %q, want the source's error", got)
		}
		endpoint := hierarchy.Set(resolver.Endpoint{Addresses: []resolver.Address{{Addr: "1.1.1.1:1"}}}, "a")
		update([]resolver.Endpoint{endpoint}, nil)
		if got := lbtest.Pick(p.cc.State()); !strings.HasSuffix(got, "an update has given it endpoints, which connect (1 endpoint)") {
			t.Errorf("calls get %q, want that the endpoints connect", got)
		}
		// Long after, it loses its connections.
		for _, state := range []connectivity.State{connectivity.Connecting, connectivity.Ready, connectivity.Connecting} {
			p.report("a", state, nil)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := lbtest.Pick(p.cc.State()); !strings.Contains(got, "did not connect within 10 s (1 endpoint") {
			t.Errorf("calls get %q, want that the endpoints do not connect", got)
		}
		p.report("a", connectivity.TransientFailure, errors.New("refused"))
		if got := lbtest.Pick(p.cc.State()); !strings.Contains(got, "refused (1 endpoint") {
			t.Errorf("calls get %q, want the error of the endpoint", got)
		}
	})
}
