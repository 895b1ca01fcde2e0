package weightedroundrobin

import (
	"runtime"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

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
