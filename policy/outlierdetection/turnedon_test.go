package outlierdetection

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/outlierscenario"
)

// When outlier detection is turned on or off, only the pickers of READY endpoints may be replaced.
func TestUpdateEnablesDetection(t *testing.T) {
	inTree(t, "understudy_weighted_round_robin", func(h *tree) {
		disabled, endpoints := outlierscenario.Default(), endpointsOf("a", "b", "c", "d")
		h.update(disabled, endpoints...)
		time.Sleep(time.Second) // a connection that lasts less than a second would count as a failure
		h.cc.SubConn("b").Report(connectivity.Idle, nil)
		synctest.Wait()
		h.cc.SubConn("b").Report(connectivity.Connecting, nil)
		h.cc.SubConn("b").Report(connectivity.TransientFailure, errors.New("refused"))
		h.cc.SubConn("c").Report(connectivity.Idle, nil)
		synctest.Wait()
		h.want(h.calls(10, ""), "map[a:5 d:5]")
		for _, config := range []struct {
			name string
			bad  string
			want string
		}{{"on", "a", "map[a:5 d:15]"}, {"off", "a", "map[a:10 d:10]"}} {
			current := disabled
			if config.name == "on" {
				current = consecutiveConfig()
			}
			state := balancer.ClientConnState{BalancerConfig: configOf(current, h.child), ResolverState: resolver.State{Endpoints: endpoints}}
			if err := h.policy.UpdateClientConnState(state); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			h.want(h.calls(20, config.bad), config.want)
		}
	})
}
