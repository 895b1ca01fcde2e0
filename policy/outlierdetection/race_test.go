package outlierdetection

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/roundrobin"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
)

func TestConcurrentCalls(t *testing.T) {
	for _, child := range []string{"understudy_weighted_round_robin", roundrobin.Name} {
		t.Run(child, func(t *testing.T) {
			for range 10 {
				synctest.Test(t, func(t *testing.T) { callConcurrently(t, child) })
			}
		})
	}
}

func callConcurrently(t *testing.T, child string) {
	h := newTree(t, child)
	config := consecutiveConfig()
	config.Interval, config.BelowOverflow, config.MaxEjectionPercent = time.Millisecond, true, 100
	h.update(config, endpointsOf("a", "b", "c")...)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for range 200 {
				if result, err := h.cc.State().Picker.Pick(balancer.PickInfo{}); err == nil && result.Done != nil {
					result.Done(doneInfo(codes.Unavailable, true, false))
				}
				time.Sleep(10 * time.Microsecond)
			}
		})
	}
	workers.Go(func() {
		for i := range 50 {
			for _, sc := range h.cc.LiveSubConns() {
				if sc.Connects() == 0 {
					continue // gRPC reports no state before Connect
				}
				sc.Report([]connectivity.State{connectivity.Ready, connectivity.Idle}[i%2], nil)
				sc.ReportHealth(connectivity.Ready, nil)
			}
			time.Sleep(50 * time.Microsecond)
		}
	})
	for i := range 20 {
		current := config
		if i%3 == 2 {
			current.ConsecutiveFailuresEjection = nil
		}
		_ = h.policy.UpdateClientConnState(balancer.ClientConnState{
			BalancerConfig: configOf(current, child),
			ResolverState:  stateOf(config, endpointsOf("a", "b", "c", "d")[i%3:]),
		})
		time.Sleep(100 * time.Microsecond)
	}
	h.policy.Close()
	published := len(h.cc.States())
	workers.Wait()
	time.Sleep(time.Second)
	if now := len(h.cc.States()); now != published {
		t.Errorf("published %d states after Close", now-published)
	}
	if live := h.cc.LiveSubConns(); len(live) > 0 {
		t.Errorf("subchannels %v remain after Close", live)
	}
}
