package weightedroundrobin

import (
	"runtime"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func readyPicker(t testing.TB, list string, exported bool) balancer.Picker {
	t.Helper()
	recorder := &lbtest.Recorder{}
	cc := &lbtest.ClientConn{Recorder: recorder}
	published := make(chan struct{}, 100)
	cc.OnUpdate(func(balancer.State) { published <- struct{}{} })
	p := newBuilder("wrr").Build(cc, balancer.BuildOptions{})
	t.Cleanup(p.Close)
	if err := p.UpdateClientConnState(balancer.ClientConnState{ResolverState: resolver.State{Endpoints: endpoints(list)}}); err != nil {
		t.Fatal(err)
	}
	for _, sc := range cc.SubConns() {
		sc.Report(connectivity.Connecting, nil)
		sc.Report(connectivity.Ready, nil)
		sc.ReportHealth(connectivity.Ready, nil)
	}
	for ready := func() bool { return cc.State().ConnectivityState == connectivity.Ready }; !ready(); {
		<-published
	}
	for exported && recorder.Export()["understudy.picks :///   "] == 0 {
		cc.State().Picker.Pick(balancer.PickInfo{}) // picks until the meter has been registered, on another goroutine
		runtime.Gosched()
	}
	return cc.State().Picker
}

var pickCases = []struct {
	name, endpoints string
	exported        bool
}{
	{"several endpoints", "a:3 b:1", false},
	{"several endpoints, exported", "a:3 b:1", true},
	{"one endpoint", "a", false},
	{"one endpoint, exported", "a", true},
}

func TestPickWithMetricsDoesNotAllocate(t *testing.T) {
	for _, test := range pickCases {
		picker := readyPicker(t, test.endpoints, test.exported)
		picker.Pick(balancer.PickInfo{}) // the first pick computes the schedule
		if n := testing.AllocsPerRun(1000, func() { picker.Pick(balancer.PickInfo{}) }); n != 0 {
			t.Errorf("%s: a pick makes %v allocations", test.name, n)
		}
	}
}
