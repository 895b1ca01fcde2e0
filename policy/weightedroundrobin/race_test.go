package weightedroundrobin

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func randomEndpoints() string {
	var list []string
	for _, i := range rand.Perm(20)[:rand.IntN(20)] {
		list = append(list, fmt.Sprintf("e%d:%d", i, 1+rand.IntN(3)))
	}
	return strings.Join(list, " ")
}

func callRandomly(t *testing.T, b balancer.Balancer, calls int) {
	for range calls {
		switch rand.IntN(5) {
		case 0:
			b.ResolverError(errors.New("no such host"))
		case 1:
			b.ExitIdle()
		default:
			es := endpoints(randomEndpoints())
			ccs := balancer.ClientConnState{}
			ccs.ResolverState.Endpoints = es
			err := b.UpdateClientConnState(ccs)
			if want := len(es) == 0; want != (err != nil) {
				t.Errorf("update with %d endpoints: error %v", len(es), err)
			}
		}
	}
}

func TestConcurrentReportsAndPicks(t *testing.T) {
	cc := &lbtest.ClientConn{}
	b := newBuilder("wrr").Build(cc, balancer.BuildOptions{})
	b.UpdateClientConnState(manyEndpoints(3, 0))
	stop := make(chan struct{})
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for !stopped(stop) {
				reportAtRandom(cc)
				if p := cc.State().Picker; p != nil {
					p.Pick(balancer.PickInfo{})
				}
			}
		})
	}
	callRandomly(t, b, 300)
	b.Close()
	states := len(cc.States())
	for range 100 {
		reportAtRandom(cc)
	}
	close(stop)
	workers.Wait()
	if n := len(cc.States()); n != states {
		t.Errorf("%d states published after Close", n-states)
	}
	if live := cc.LiveSubConns(); len(live) != 0 {
		t.Errorf("subchannels %v remain after Close", live)
	}
}

func stopped(stop chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

func reportAtRandom(cc *lbtest.ClientConn) {
	subConns := cc.SubConns()
	sc := subConns[len(subConns)-1-rand.IntN(min(len(subConns), 30))]
	states := []connectivity.State{connectivity.Idle, connectivity.Connecting, connectivity.Ready, connectivity.TransientFailure}
	sc.Report(states[rand.IntN(len(states))], errors.New("an error"))
	sc.ReportHealth(connectivity.Ready, nil)
}

// idleLeaf is IDLE again whenever it connects, for many times.
type idleLeaf struct {
	balancer.Balancer // nil
	cc                balancer.ClientConn
	connects, deepest int
	done              chan struct{}
}

func (l *idleLeaf) report(state connectivity.State) {
	l.cc.UpdateState(balancer.State{ConnectivityState: state, Picker: base.NewErrPicker(balancer.ErrNoSubConnAvailable)})
}

func (l *idleLeaf) Name() string { return "idle" }
func (l *idleLeaf) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	l.cc = cc
	return l
}

func (l *idleLeaf) UpdateClientConnState(balancer.ClientConnState) error {
	l.report(connectivity.Idle)
	return nil
}

func (l *idleLeaf) ExitIdle() {
	l.deepest = max(l.deepest, runtime.Callers(0, make([]uintptr, 1000)))
	if l.connects++; l.connects == 10_000 {
		close(l.done)
		return
	}
	l.report(connectivity.Connecting)
	l.report(connectivity.Idle)
}

func (l *idleLeaf) Close() {}

func TestEndpointThatIsAlwaysIdle(t *testing.T) {
	leaf, cc := &idleLeaf{done: make(chan struct{})}, &lbtest.ClientConn{}
	b := spec(func() balancer.Builder { return leaf }).Builder("wrr").Build(cc, balancer.BuildOptions{})
	b.UpdateClientConnState(manyEndpoints(1, 0))
	<-leaf.done
	b.Close()
	if leaf.deepest > 100 {
		t.Errorf("connected on a stack of %d calls", leaf.deepest)
	}
}
