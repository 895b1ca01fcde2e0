package priority

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"

	_ "github.com/understudy-lb/understudy/policy/outlierdetection"
	_ "github.com/understudy-lb/understudy/policy/weightedroundrobin"
)

// BenchmarkOverflow compares a pick and its Done without and with overflow, at a share of 1: in
// turns, and with the shortest times, because other processes disturb. It also times a timed call.
func BenchmarkOverflow(b *testing.B) {
	const leaf = `{"understudy_weighted_round_robin": {}}`
	for name, child := range map[string]string{
		"without outlier detection": leaf,
		"with outlier detection":    `{"understudy_outlier_detection": {"consecutiveFailuresEjection": {}, "childPolicy": [` + leaf + `]}}`,
	} {
		b.Run(name, func(b *testing.B) {
			on := readyPicker(b, child, 10, true)
			highest := on.(*offerPicker).offers[0]
			pickers := []balancer.Picker{readyPicker(b, child, 10, false), on, pickerFunc(func(info balancer.PickInfo) (balancer.PickResult, error) {
				return highest.pick(info, nil)
			})}
			const calls = 1000
			shortest := [3]float64{math.Inf(1), math.Inf(1), math.Inf(1)}
			for b.Loop() {
				for i, picker := range pickers {
					began := time.Now()
					call(b, picker, calls)
					shortest[i] = min(shortest[i], float64(time.Since(began).Nanoseconds())/calls)
				}
			}
			b.ReportMetric(shortest[0], "off-ns")
			b.ReportMetric(shortest[1], "on-ns")
			b.ReportMetric(shortest[1]-shortest[0], "more-ns")
			b.ReportMetric(shortest[2], "timed-ns")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// Most calls at a share of 1 allocate nothing.
func TestUntimedCallsDoNotAllocate(t *testing.T) {
	for name, child := range map[string]string{
		"pick_first":        `{"pick_first": {}}`,
		"outlier detection": `{"understudy_outlier_detection": {"consecutiveFailuresEjection": {}, "childPolicy": [{"understudy_weighted_round_robin": {}}]}}`,
	} {
		picker := readyPicker(t, child, 1, true)
		if n := testing.AllocsPerRun(100, func() { call(t, picker, 128) }); n > 8 {
			t.Errorf("%s: 128 calls, of which one is timed, allocate %v times", name, n)
		}
	}
}

// readyPicker returns the picker of two READY priorities that use so many endpoints each. With
// overflow, one in 128 of its calls is timed.
func readyPicker(t testing.TB, child string, endpoints int, overflow bool) balancer.Picker {
	cc, builder := &lbtest.ClientConn{}, balancer.Get(Name)
	parsed, err := builder.(balancer.ConfigParser).ParseConfig(fmt.Appendf(nil,
		`{"overflow": %v, "warmStandby": 1, "priorities": ["a", "b"], "children": {"a": {"config": [%s]}, "b": {"config": [%s]}}}`, overflow, child, child))
	if err != nil {
		t.Fatal(err)
	}
	state := resolver.State{}
	for _, name := range []string{"a", "b"} {
		for i := range endpoints {
			e := resolver.Endpoint{Addresses: []resolver.Address{{Addr: fmt.Sprint(name, i)}}}
			state.Endpoints = append(state.Endpoints, hierarchy.Set(e, name))
		}
	}
	published := make(chan struct{}, 1000)
	cc.OnUpdate(func(balancer.State) { published <- struct{}{} })
	policy := builder.Build(cc, balancer.BuildOptions{})
	t.Cleanup(policy.Close)
	if err := policy.UpdateClientConnState(balancer.ClientConnState{ResolverState: state, BalancerConfig: parsed}); err != nil {
		t.Fatal(err)
	}
	isReady := map[*lbtest.SubConn]bool{}
	for {
		for _, sc := range cc.SubConns() {
			if !isReady[sc] && sc.Connects() > 0 {
				isReady[sc] = true
				sc.Report(connectivity.Ready, nil)
				sc.ReportHealth(connectivity.Ready, nil)
			}
		}
		if picker := cc.State().Picker; endpointsOf(t, picker) == endpoints {
			call(t, picker, 100_000)
			return cc.State().Picker
		}
		<-published
	}
}

func endpointsOf(t testing.TB, picker balancer.Picker) int {
	if p, ok := picker.(*offerPicker); ok && len(p.offers) < 2 {
		return 0
	}
	used := map[balancer.SubConn]bool{}
	for range 100 {
		if result, err := picker.Pick(balancer.PickInfo{}); err == nil {
			used[result.SubConn] = true
			end(result)
		}
	}
	return len(used)
}

func call(t testing.TB, picker balancer.Picker, times int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	for range times {
		result, err := picker.Pick(balancer.PickInfo{Ctx: ctx, FullMethodName: "/a/b"})
		if err != nil {
			t.Fatal(err)
		}
		end(result)
	}
}

func end(result balancer.PickResult) {
	if result.Done != nil {
		result.Done(balancer.DoneInfo{BytesSent: true, BytesReceived: true})
	}
}
