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
	"google.golang.org/grpc/resolver"
)

func TestConcurrentCalls(t *testing.T) {
	for _, child := range []string{"understudy_weighted_round_robin", roundrobin.Name} {
		t.Run(child, func(t *testing.T) {
			for range 10 {
				synctest.Test(t, func(t *testing.T) { atOnce(t, child) })
			}
		})
	}
}

func atOnce(t *testing.T, child string) {
	h := newTree(t, child)
	config := consecutive()
	config.Interval, config.ReportEmptied, config.MaxEjectionPercent = time.Millisecond, true, 100
	h.update(config, endpointsOf("a", "b", "c")...)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range 200 {
				if result, err := h.cc.State().Picker.Pick(balancer.PickInfo{}); err == nil && result.Done != nil {
					result.Done(ended(codes.Unavailable, true, false))
				}
				time.Sleep(10 * time.Microsecond)
			}
		})
	}
	all.Go(func() {
		for i := range 50 {
			for _, sc := range h.cc.Live() {
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
		now := config
		if i%3 == 2 {
			now.ConsecutiveFailuresEjection = nil
		}
		_ = h.policy.UpdateClientConnState(balancer.ClientConnState{
			BalancerConfig: given(now, child),
			ResolverState:  resolver.State{Endpoints: endpointsOf("a", "b", "c", "d")[i%3:]},
		})
		time.Sleep(100 * time.Microsecond)
	}
	h.policy.Close()
	published := len(h.cc.States())
	all.Wait()
	time.Sleep(time.Second)
	if now := len(h.cc.States()); now != published {
		t.Errorf("published %d states after Close", now-published)
	}
	if live := h.cc.Live(); len(live) > 0 {
		t.Errorf("subchannels %v remain after Close", live)
	}
}
