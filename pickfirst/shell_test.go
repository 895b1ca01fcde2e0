package pickfirst

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/endpointsharding"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// Reports of a subchannel that was shut down have no effect on the address's new subchannel.
func TestLateReportsAreNotHeard(t *testing.T) {
	cc, p := build(t)
	update(t, p, endpoints("a", "b"))
	cc.SubConn("a").Report(connectivity.TransientFailure, errors.New("refused"))
	old := cc.SubConn("a")
	cc.SubConn("b").Report(connectivity.Ready, nil) // shuts down a
	cc.SubConn("b").Report(connectivity.Idle, nil)
	p.ExitIdle() // tries a again
	n := len(cc.States())
	old.Report(connectivity.Shutdown, nil)
	old.Report(connectivity.Ready, nil)
	if cc.SubConn("a") == old || len(cc.States()) != n {
		t.Errorf("a report of a subchannel that was shut down had an effect: %v", cc.State().ConnectivityState)
	}
}

func TestParentMayCallBackWhileItIsToldTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc, p := build(t)
		update(t, p, endpoints("a"))
		cc.OnUpdate(func(s balancer.State) {
			if s.ConnectivityState == connectivity.Idle {
				s.Picker.Pick(balancer.PickInfo{})
				p.ExitIdle()
			}
		})
		cc.SubConn("a").Report(connectivity.Ready, nil)
		pass(time.Second)
		cc.SubConn("a").Report(connectivity.Idle, nil)
		if n := cc.SubConn("a").Connects(); n != 2 {
			t.Errorf("%d calls of Connect, want 2", n)
		}
	})
}

func TestNothingIsPublishedAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc, p := build(t)
		update(t, p, stateattr.EnableHealthListener(endpoints("a", "b")))
		a := cc.SubConn("a")
		a.Report(connectivity.Ready, nil)
		idle := &idlePicker{policy: p.(*policy)}
		p.Close()
		n := len(cc.States())
		a.ReportHealth(connectivity.Ready, nil)
		a.Report(connectivity.Idle, nil)
		idle.Pick(balancer.PickInfo{})
		p.ExitIdle()
		p.ResolverError(errors.New("nxdomain"))
		p.UpdateClientConnState(balancer.ClientConnState{ResolverState: endpoints("c")})
		p.UpdateSubConnState(a, balancer.SubConnState{})
		p.Close()
		<-time.After(time.Hour)
		if len(cc.States()) != n || len(cc.Live()) != 0 {
			t.Errorf("after Close: %v published, %v open", cc.States()[n:], cc.Live())
		}
	})
}

// grpc-go's endpointsharding panics if a child has not published when its update returns, and holds
// locks during calls in both directions.
func TestUnderEndpointSharding(t *testing.T) {
	cc := &lbtest.ClientConn{}
	parent := endpointsharding.NewBalancer(cc, balancer.BuildOptions{}, balancer.Get(Name).Build, endpointsharding.Options{})
	s := endpoints("a", "b", "c", "d")
	update(t, parent, s)
	var wg sync.WaitGroup
	many := func(f func(i int)) {
		wg.Go(func() {
			for i := range 500 {
				f(i)
			}
		})
	}
	many(func(i int) {
		parent.UpdateClientConnState(balancer.ClientConnState{ResolverState: endpoints("a", "b", fmt.Sprint("x", i%3))})
	})
	many(func(int) { cc.State().Picker.Pick(balancer.PickInfo{}) })
	many(func(int) {
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
	if live := cc.Live(); len(live) != 0 {
		t.Errorf("%v are open after Close", live)
	}
}

// Close races with reports, picks and timers. The test is for the race detector.
func TestCloseRaces(t *testing.T) {
	for range 200 {
		cc := &lbtest.ClientConn{}
		p := balancer.Get(Name).Build(cc, balancer.BuildOptions{})
		update(t, p, endpoints("a", "b"))
		a := cc.SubConn("a")
		var wg sync.WaitGroup
		wg.Go(func() { a.Report(connectivity.Ready, nil); a.Report(connectivity.Idle, nil) })
		wg.Go(func() { cc.State().Picker.Pick(balancer.PickInfo{}); p.ExitIdle() })
		wg.Go(p.Close)
		wg.Wait()
		n := len(cc.States())
		if live := cc.Live(); len(live) != 0 || len(cc.States()) != n {
			t.Fatalf("%v are open after Close", live)
		}
	}
}
