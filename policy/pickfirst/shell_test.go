package pickfirst

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/endpointsharding"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func TestLateReportsAreIgnored(t *testing.T) {
	cc, p := build(t)
	update(t, p, endpoints("a", "b"))
	cc.SubConn("a").Report(connectivity.TransientFailure, errors.New("refused"))
	old := cc.SubConn("a")
	cc.SubConn("b").Report(connectivity.Ready, nil)
	cc.SubConn("b").Report(connectivity.Idle, nil)
	p.ExitIdle()
	n := len(cc.States())
	old.Report(connectivity.Shutdown, nil)
	old.Report(connectivity.Ready, nil)
	if cc.SubConn("a") == old || len(cc.States()) != n {
		t.Errorf("a report of a subchannel that was shut down had an effect: %v", cc.State().ConnectivityState)
	}
}

// grpc-go's endpointsharding panics if a child publishes nothing during its first update. It holds
// locks while it calls its children, and while they call it.
func TestUnderEndpointSharding(t *testing.T) {
	cc := &lbtest.ClientConn{}
	parent := endpointsharding.NewBalancer(cc, balancer.BuildOptions{}, balancer.Get(Name).Build, endpointsharding.Options{})
	s := endpoints("a", "b", "c", "d")
	update(t, parent, s)
	var wg sync.WaitGroup
	concurrently := func(f func(i int)) {
		wg.Go(func() {
			for i := range 500 {
				f(i)
			}
		})
	}
	concurrently(func(i int) {
		parent.UpdateClientConnState(balancer.ClientConnState{ResolverState: endpoints("a", "b", fmt.Sprint("x", i%3))})
	})
	concurrently(func(int) { cc.State().Picker.Pick(balancer.PickInfo{}) })
	concurrently(func(int) {
		for _, name := range []string{"a", "b"} {
			if sc := cc.SubConn(name); sc != nil {
				sc.Report(connectivity.Ready, nil)
				sc.Report(connectivity.Idle, nil)
			}
		}
	})
	wg.Wait()
	update(t, parent, s)
	parent.Close()
	if live := cc.LiveSubConns(); len(live) != 0 {
		t.Errorf("%v are open after Close", live)
	}
}
