package pickfirst

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	grpcpickfirst "google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	core "github.com/understudy-lb/understudy/internal/core/pickfirst"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

// These differences from grpc-go need invalid input, or cannot be compared in a random schedule
// (see TestDifferential). The second table in docs/pick-first.md explains them.
func TestDifferencesInFixedSchedules(t *testing.T) {
	foreign := balancer.ClientConnState{ResolverState: endpoints("a", "b"),
		BalancerConfig: struct {
			serviceconfig.LoadBalancingConfig
		}{}}
	for _, c := range []struct {
		name         string
		run          func(*recorder) error
		ours, theirs string
	}{
		{
			"same list again, every 200 ms",
			func(r *recorder) error {
				for range 10 {
					r.Update([]string{"a", "b"}, false)
					r.Report("a", core.Connecting, nil)
					r.Advance(200 * time.Millisecond)
				}
				return nil
			},
			"[publish CONNECTING connect a connect b], no error",
			"[publish CONNECTING connect a" + strings.Repeat(" publish CONNECTING", 9) + "], no error",
		}, {
			"endpoints without addresses",
			func(r *recorder) error {
				s := resolver.State{Endpoints: make([]resolver.Endpoint, 1)}
				return r.policy.UpdateClientConnState(balancer.ClientConnState{ResolverState: s})
			},
			"[publish TRANSIENT_FAILURE: no addresses: the resolver returned none, or none with a path to this policy], bad resolver state",
			"[publish CONNECTING], no error",
		}, {
			"first update has a foreign configuration",
			func(r *recorder) error { return r.policy.UpdateClientConnState(foreign) },
			"[publish TRANSIENT_FAILURE: pick_first: configuration is a struct { serviceconfig.LoadBalancingConfig }, " +
				"want one that this policy parsed: bad resolver state], bad resolver state",
			"[], bad resolver state",
		}, {
			"foreign configuration while connecting",
			func(r *recorder) error {
				r.Update([]string{"a", "b"}, false)
				err := r.policy.UpdateClientConnState(foreign)
				r.Advance(time.Second)
				return err
			},
			"[publish CONNECTING connect a connect b], bad resolver state",
			"[publish CONNECTING connect a], bad resolver state",
		}, {
			"configuration null",
			func(r *recorder) error {
				_, err := r.builder.(balancer.ConfigParser).ParseConfig(json.RawMessage(`null`))
				return err
			},
			"[], error", "[], no error",
		}, {
			"second connection in a row that ends within a second",
			func(r *recorder) error {
				r.Update([]string{"a"}, false)
				for range 2 {
					for _, now := range []core.State{core.Connecting, core.Ready, core.Idle} {
						r.Report("a", now, nil)
					}
					r.ExitIdle()
				}
				return nil
			},
			"[publish CONNECTING connect a publish READY a resolve publish IDLE publish CONNECTING connect a " +
				"publish READY a resolve publish IDLE publish CONNECTING " +
				"publish TRANSIENT_FAILURE: the connection ended within 1s of its handshake resolve], no error",
			"[publish CONNECTING connect a publish READY a publish IDLE publish CONNECTING connect a " +
				"publish READY a publish IDLE publish CONNECTING connect a], no error",
		}, {
			"no subchannel can be made",
			func(r *recorder) error {
				r.refuse("a")
				r.Update([]string{"a"}, false)
				return nil
			},
			"[publish CONNECTING publish TRANSIENT_FAILURE: closing resolve], no error",
			"[publish CONNECTING], no error",
		},
	} {
		for name, want := range map[string]string{Name: c.ours, grpcpickfirst.Name: c.theirs} {
			synctest.Test(t, func(t *testing.T) {
				r := newRecorder(balancer.Get(name), stateattr.EnableHealthListener)
				outcome := "no error"
				if err := c.run(r); errors.Is(err, balancer.ErrBadResolverState) {
					outcome = "bad resolver state"
				} else if err != nil {
					outcome = "error"
				}
				if got := fmt.Sprintf("%v, %s", r.Take(), outcome); got != want {
					t.Errorf("%s: %s did %s, want %s", c.name, name, got, want)
				}
				r.Close()
			})
		}
	}
}
